/* plain.h -- the chain (chain.h) that most products and convolutions have behind them, for epilogues that apply it without a loop over
 * steps: a bias, a normalization's factor and shift, a shortcut, relu. */
#ifndef QN_CUDA_PLAIN_H
#define QN_CUDA_PLAIN_H
#include <stdbool.h>
#include "steps.h"

/* Part after part; operand indices, -1: none. */
typedef struct cuda_plain {
  int32_t bias, factor;                   /* added; multiplied by, and then the next operand added (both f32): of each column, or */
  int32_t by_row;                         /* of each row */
  int32_t added;                          /* a matrix, of which every element is added */
  int32_t relu;
} cuda_plain;

#ifdef __cplusplus
extern "C" {
#endif
struct cuda_chain;
/* Is the chain no more than that? */
bool cuda_chain_plain(const struct cuda_chain *c, cuda_plain *plain);
#ifdef __cplusplus
}
#endif
#endif
