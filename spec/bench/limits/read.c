/* read: the bytes of a URL through libcurl to nowhere, as the limit of what any client could do. A multi, HTTP/2 and
 * the receive window as in core/net.
 *
 *	read CA_FILE URL
 *
 * prints {"synced":BYTES} when all has come, and ends when stdin does. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <curl/curl.h>

static size_t on_body(char *bytes, size_t size, size_t count, void *data)
{
	(void)bytes;
	*(size_t *)data += size * count;
	return size * count;
}

static CURL *easy_new(const char *ca_file, const char *url, size_t *got)
{
	CURL *easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
	curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "perilune-bench");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, got);
	return easy;
}

/* 0 when the transfer went well. */
static int run(CURLM *multi)
{
	int running = 1, left;
	while (running) {
		if (curl_multi_perform(multi, &running) || (running && curl_multi_poll(multi, NULL, 0, 1000, NULL)))
			return -1;
	}
	CURLMsg *message = curl_multi_info_read(multi, &left);
	return message && message->data.result == CURLE_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
	size_t got = 0;
	char byte;
	if (argc != 3)
		return 2;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	CURLM *multi = curl_multi_init();
	CURL *easy = easy_new(argv[1], argv[2], &got);
	curl_multi_add_handle(multi, easy);
	int result = run(multi);
	printf("{\"synced\":%zu}\n{\"settled\":true}\n", got);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	curl_multi_remove_handle(multi, easy);
	curl_easy_cleanup(easy);
	curl_multi_cleanup(multi);
	return result ? 1 : 0;
}
