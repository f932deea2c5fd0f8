#include "base/alloc.h"
#include "cli/cli.h"

int main(int argc, char **argv)
{
	alloc_tune();
	return cli_main(argc, argv);
}
