/* tuning.h -- what the files of tuning share: search.c -> measure.c, tune_cache.c. */
#ifndef QUERN_TUNING_H
#define QUERN_TUNING_H
#include "planning/choose.h"

/* tune_cache.c */
/* What the tune cache holds for what is offered; false: nothing. */
bool qn__tune_lookup(const qn__planning *pc, const qn__offers *offers, bool pinned, qn__choice *out);
/* Stores the choice: the part's engine. cut: it was offered only the ops that it takes, the first ones. */
void qn__tune_remember(const qn__planning *pc, const qn__offers *offers, const qn_part *part, bool cut, bool pinned);

/* measure.c: runs n built parts that take the same ops; sets *best, and its ns. */
qn_status qn__tune_measure(const qn__planning *pc, qn_part **part, int n, int *best);
#endif
