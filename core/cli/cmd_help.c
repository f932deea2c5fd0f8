#include <stdio.h>

#include "cli/options.h"
#include "script/host.h"

static int help_all(void)
{
	puts("Perilune runs Kubernetes controllers written in Lua.\n\nusage: perilune VERB [FLAG...] [ARGUMENT...]\n");
	for (const struct verb *verb = cli_verbs(); verb->name; verb++)
		printf("  %-8s %-9s %s\n", verb->name, verb->arguments, verb->summary);
	puts("\nflags (`perilune help VERB` names those of one verb):");
	options_print(stdout, ~0U);
	puts("\nexit codes: 0 stopped as asked; 1 failed; 2 usage; 3 caches did not sync in time; 4 lost leadership");
	return EXIT_STOPPED;
}

static int help_verb(const struct verb *verb)
{
	printf("usage: perilune %s%s%s%s\n\n%s\n", verb->name, verb->flags ? " [FLAG...]" : "",
	       *verb->arguments ? " " : "", verb->arguments, verb->summary);
	if (*verb->text)
		printf("\n%s", verb->text);
	puts("\nflags:");
	options_print(stdout, verb->flags);
	return EXIT_STOPPED;
}

/* Both `perilune help run` and `perilune run --help`. */
int cmd_help(const struct options *options)
{
	const struct verb *about = options->verb;
	if (about && about->run == cmd_help && !options->help) {
		if (!options->operands.count)
			return help_all();
		about = cli_verb(options->operands.items[0]);
		if (!about)
			return cli_unknown_verb(options->operands.items[0]);
	}
	return about ? help_verb(about) : help_all();
}
