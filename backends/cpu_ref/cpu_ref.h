/* cpu_ref.h -- shared by all files of this backend: the host's callbacks, the device, the table of engines. */
#ifndef CPU_REF_H
#define CPU_REF_H
#include <quern/kit.h>

extern const qn_host *cpu_host;                     /* backend.c: as given by core */
extern const qn_device_ops cpu_device;              /* device.c */
extern const qn_engine_list *const cpu_engines[];   /* engines.c */

/* What an engine keeps from prepare to run is one block of memory in p->state (backend.c).
 * cpu_state: zeroed; NULL: out of memory, error already set, so return QN_NO_MEMORY. A prepare that refuses later must call cpu_release.
 * cpu_keep: a copy of prepare's data. */
void     *cpu_state(qn_prepared *p, size_t bytes);
qn_status cpu_keep(qn_prepared *p, const void *state, size_t bytes);
void      cpu_release(qn_prepared *p);

#endif
