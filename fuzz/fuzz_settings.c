/* fuzz_settings.c -- any bytes as settings, one "key=value" per line: each is accepted, and can be read back, or refused with
 * a sentence that names it. The environment goes through the same functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  qn__settings s = { 0 };
  for (char *line = text, *next; *line; line = next) {
    size_t length = strcspn(line, "\n");
    next = line[length] ? line + length + 1 : line + length;
    line[length] = '\0';
    char *value = strchr(line, '=');
    if (!value) continue;
    *value++ = '\0';
    int i = qn__setting_index(line);
    qn_status status = qn__settings_set(&s, line, value, 2);
    if ((i < 0) != (qn__setting_index(line) < 0) || (i < 0 && !status)) abort();
    if (status ? !*qn_last_error() : strcmp(s.text[i], value) != 0) {
      fprintf(stderr, "%s=%s\n", line, value);
      abort();
    }
  }
  qn__settings_free(&s);
  free(text);
  return 0;
}
