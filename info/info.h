/* info.h -- the commands of quern-info. Each returns the exit status. */
#ifndef QUERN_INFO_H
#define QUERN_INFO_H
#include <stdbool.h>
#include <stdio.h>
#include <quern/tools.h>

enum { INFO_MAX_OPTIONS = 32 };

int info_list(const char *const options[]);       /* list.c */
int info_ops(const char *const options[]);
int info_explain(const char *const options[], const char *model, const char *line);   /* explain.c */
int info_config(const char *const options[]);     /* doctor.c */
int info_doctor(const char *const options[]);

int info_fail(qn_status status);                  /* prints qn_last_error(); returns the matching exit status */
int info_check_settings(const char *const options[]);

#endif
