#include "kube/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

void secret_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	alloc_free(text);
}

void secret_texts_free(char **texts)
{
	for (char **text = texts; text && *text; text++)
		secret_free(*text);
	alloc_free(texts);
}

static void free_bytes(char *bytes, size_t length)
{
	explicit_bzero(bytes, length);
	alloc_free(bytes);
}

/* realloc would leave the old bytes behind. */
static char *grow(char *bytes, size_t length, size_t capacity)
{
	char *larger = alloc_resize(NULL, capacity);
	memcpy(larger, bytes, length);
	free_bytes(bytes, length);
	return larger;
}

/* Reads to the end and not to st_size: a pipe from a shell's <(…) has none. */
static char *read_all(int fd, size_t first, size_t *length)
{
	size_t capacity = first + 2, used = 0;
	char *bytes = alloc_resize(NULL, capacity);
	for (;;) {
		if (used + 1 == capacity)
			bytes = grow(bytes, used, capacity *= 2);
		ssize_t got = read(fd, bytes + used, capacity - used - 1);
		if (got == 0)
			break;
		if (got < 0 && errno == EINTR)
			continue;
		if (got > 0 && (used += (size_t)got) <= SECRET_FILE_LIMIT)
			continue;
		int cause = got < 0 ? errno : EFBIG;
		free_bytes(bytes, used);
		errno = cause;
		return NULL;
	}
	bytes[used] = '\0';
	*length = used;
	return bytes;
}

static char *read_path(const char *path, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct stat stat;
	size_t size = fstat(fd, &stat) || stat.st_size < 0 ? 0 : (size_t)stat.st_size;
	char *bytes = read_all(fd, size < SECRET_FILE_LIMIT ? size : SECRET_FILE_LIMIT, length);
	int cause = errno;
	close(fd);
	errno = cause;
	return bytes;
}

char *secret_read(const char *path, size_t *length, struct err *err)
{
	size_t unused;
	char *bytes = read_path(path, length ? length : &unused);
	if (bytes)
		return bytes;
	int cause = errno;
	if (cause == EFBIG)
		err_set(err, "", "%s is larger than %zu MiB", path, SECRET_FILE_LIMIT >> 20);
	else
		err_set(err, "", "cannot read %s: %s", path, strerror(cause));
	errno = cause;
	return NULL;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The 6 bits of a character, or -1. */
static int sextet(char c)
{
	const char *at = c ? strchr(alphabet, c) : NULL;
	return at ? (int)(at - alphabet) : -1;
}

/* The next character that counts, or NUL at the end. */
static char next_character(const char **at)
{
	while (**at == '\n' || **at == '\r')
		++*at;
	return **at ? *(*at)++ : '\0';
}

/* One group of four characters. The count of bytes written to out; 0 at the end; -1 when malformed. */
static int decode_group(const char **at, char *out)
{
	unsigned bits = 0;
	int given = 0;
	for (int i = 0; i < 4; i++) {
		char c = next_character(at);
		if (!c && i == 0)
			return 0;
		int value = sextet(c);
		bool padding = c == '=' && i >= 2;
		if (value < 0 ? !padding : given != i)
			return -1;
		given += value >= 0;
		bits = bits << 6 | (value < 0 ? 0 : (unsigned)value);
	}
	for (int i = 0; i < 3; i++)
		out[i] = (char)(bits >> (16 - 8 * i));
	return given - 1;
}

char *secret_decode(const char *base64, size_t *length)
{
	size_t size = strlen(base64) / 4 * 3 + 4, used = 0;
	char *out = alloc_zero(size);
	int got;
	while ((got = decode_group(&base64, out + used)) == 3)
		used += 3;
	if (got > 0 && !next_character(&base64)) {
		used += (size_t)got;
		got = 0;
	}
	if (got) {
		free_bytes(out, size);
		return NULL;
	}
	out[used] = '\0';
	*length = used;
	return out;
}

char *secret_encode(const char *bytes, size_t length)
{
	char *text = alloc_zero((length + 2) / 3 * 4 + 1), *out = text;
	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		unsigned bits = (unsigned)(unsigned char)bytes[i] << 16;
		bits |= left > 1 ? (unsigned)(unsigned char)bytes[i + 1] << 8 : 0;
		bits |= left > 2 ? (unsigned char)bytes[i + 2] : 0;
		*out++ = alphabet[bits >> 18];
		*out++ = alphabet[bits >> 12 & 63];
		*out++ = left > 1 ? alphabet[bits >> 6 & 63] : '=';
		*out++ = left > 2 ? alphabet[bits & 63] : '=';
	}
	return text;
}
