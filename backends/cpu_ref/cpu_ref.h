/* cpu_ref.h -- what every file of this backend may use: the host's callbacks, the device, the table of engines. */
#ifndef CPU_REF_H
#define CPU_REF_H
#include <quern/kit.h>

extern const qn_host *cpu_host;                     /* backend.c: what core handed over */
extern const qn_device_ops cpu_device;              /* device.c */
extern const qn_engine_list *const cpu_engines[];   /* engines.c */

/* What an engine keeps from prepare to run lies in one piece of memory behind p->state (backend.c).
 * cpu_state: zeroed; NULL: there is none, which has been said, so return QN_NO_MEMORY. A refusal after it wants cpu_release.
 * cpu_keep: a copy of what prepare has in hand. */
void     *cpu_state(qn_prepared *p, size_t bytes);
qn_status cpu_keep(qn_prepared *p, const void *state, size_t bytes);
void      cpu_release(qn_prepared *p);

#endif
