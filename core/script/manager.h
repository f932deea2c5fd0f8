/* manager: the field manager of a script's writes, by which the API server knows whose a field is. */
#ifndef PERILUNE_SCRIPT_MANAGER_H
#define PERILUNE_SCRIPT_MANAGER_H

#define MANAGER_SIZE 129 /* the API server takes 128 bytes at most */

/* "perilune/SCRIPT" or "perilune/SCRIPT/CONTROLLER" (controller NULL: none). Of a longer one the end is a number that
 * stands for all of it, the same in each run; control characters, which the API server does not take, are dashes. */
void manager_write(const char *script, const char *controller, char out[MANAGER_SIZE]);

#endif
