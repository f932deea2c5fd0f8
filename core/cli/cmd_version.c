#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "script/host.h"

/* Named as in Go and in image platforms. */
#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#error "built for x86-64 and arm64 only"
#endif

int cmd_version(const struct options *options)
{
	if (options->output && !strcmp(options->output, "json"))
		puts("{\"version\":\"" PERILUNE_VERSION "\",\"os\":\"linux\",\"arch\":\"" ARCHITECTURE "\"}");
	else
		puts("perilune " PERILUNE_VERSION " (linux/" ARCHITECTURE ")");
	return EXIT_STOPPED;
}
