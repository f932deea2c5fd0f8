#include "kube/warning.h"

#include <string.h>

#include "base/log.h"

#define MOST_SEEN 1000 /* beyond it all are forgotten: a repeated line is better than a lost one */

void warning_log(struct strmap *seen, const char *text, const char *script)
{
	size_t length = strlen(text);
	if (!length || strmap_get(seen, text, length))
		return;
	if (seen->count >= MOST_SEEN)
		strmap_clear(seen);
	strmap_put(seen, text, length, seen);
	log_warn(LOG_FIELDS({"script", script}), "API server: %s", text);
}
