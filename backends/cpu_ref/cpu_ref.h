/* cpu_ref.h -- what every file of this backend may use: the host's callbacks, the device, the table of engines. */
#ifndef CPU_REF_H
#define CPU_REF_H
#include <quern/kit.h>

extern const qn_host *cpu_host;                     /* backend.c: what core handed over */
extern const qn_device_ops cpu_device;              /* device.c */
extern const qn_engine_list *const cpu_engines[];   /* engines.c */

#endif
