/* rights: what check and rbac share: the rights that the scripts of a program need, and its cluster's kinds. */
#ifndef PERILUNE_CLI_RIGHTS_H
#define PERILUNE_CLI_RIGHTS_H

#include "cli/program.h"
#include "script/rbac.h"

/* Of the scripts that the program has loaded. The lease is the command line's, else one of the cluster's or the service
 * account's namespace. */
struct rbac *rights_new(struct program *program, struct audit *audit);
/* Runs the loop until the kinds are looked up. 0, or an exit code after those that are not there were told. */
int rights_look_up(struct program *program, struct rbac *rbac);
/* Runs the loop until each right is asked for. 0, or an exit code after those that are missing were told. */
int rights_review(struct program *program, struct rbac *rbac);

#endif
