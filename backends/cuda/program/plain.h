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
  int32_t relu, any;                      /* any: of all these */
} cuda_plain;

#ifdef __cplusplus
extern "C" {
#endif
struct cuda_chain;
struct qn_request;
/* Is the chain no more than that? */
bool cuda_chain_plain(const struct cuda_chain *c, cuda_plain *plain);
/* Do its vectors of n columns begin and end, in each batch, in units of 16 bytes? */
bool cuda_plain_vectors(const struct cuda_chain *c, const cuda_plain *plain, const struct qn_request *r, int64_t n);
#ifdef __cplusplus
}
#endif
#endif
