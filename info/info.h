/* info.h -- the commands of quern-info. Each returns the exit status. */
#ifndef QUERN_INFO_H
#define QUERN_INFO_H
#include <stdbool.h>
#include <stdio.h>
#include <quern/tools.h>

enum { INFO_MAX_OPTIONS = 32 };

/* only: NULL, or the ops whose name holds it, or those of that family. */
int info_list(const char *const options[], const char *only);     /* list.c */
int info_ops(const char *const options[], const char *only);
int info_explain(const char *const options[], const char *model, const char *line);   /* explain.c */
int info_gradient(const char *line, const char *by);              /* gradient.c; by: NULL, or names joined by commas */
int info_config(const char *const options[], const char *only);   /* doctor.c; only: NULL */
int info_doctor(const char *const options[], const char *only);
void info_wrap_lines(void);                       /* wrap.c; to be called before anything is printed */

int info_fail(qn_status status);                  /* prints qn_last_error(); returns the matching exit status */
int info_check_settings(const char *const options[]);

#endif
