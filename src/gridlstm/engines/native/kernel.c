/* The work of a step between its matrix products.
 *
 * Compiled on the machine that uses it (build.py). Includes itself once for each pair of types: REAL is
 * the type of states and arithmetic, LOW that of the operands and results of products. torch_backend.py
 * computes the same with PyTorch and is the place to read first. layout.py mirrors the structures.
 *
 * Letters: n a block of the step, b a sample, r = n * batch + b a row, d the length of a vector; H, M, G
 * the columns of all hidden vectors, of all memories, of the gates of a phase. The rows of a step are
 * pitch_h, pitch_m, pitch_g elements apart.
 */
#ifndef REAL

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LSTM, IDENTITY, TANH, RELU, GRU };

/* One dimension. Sides are [faces, batch, d], the vectors of all blocks [blocks, batch, d]. In the backward
 * pass all of them are gradients; null if there is none. */
typedef struct {
    int64_t kind, phase, d;
    int64_t standard;              /* for an LSTM: h' = g_o tanh(m') instead of tanh(g_o m') */
    int64_t hidden, memory, gates; /* its first column of H, of M, of the gates of its phase */
    const int64_t *successor;      /* [blocks]: its place in the next step; -1 if it leaves the grid */
    const int64_t *face, *exit;    /* [blocks]: faces through which vectors enter and leave */
    const uint8_t *enters;         /* [blocks] */
    void *in_h, *in_m, *out_h, *out_m, *blocks_h, *blocks_m;
} Transform;

typedef struct {
    int64_t transforms, phases, blocks, batch, H, G[2];
    int64_t pitch_h, pitch_m, pitch_g[2];
    int64_t threads;
    const Transform *transform;
    const int64_t *weight_set; /* [blocks] */
    const uint8_t *mask;       /* [blocks, batch], or null */
    const uint8_t *kept;       /* [phases, blocks, batch, H], or null without dropout */
    const void *scale;         /* [phases, blocks, H]: of what dropout keeps */
    const void *bias[2];       /* [sets, G] */
} Grid;

/* The first row of one step in each buffer: x and gates are LOW, the rest REAL. In the backward pass
 * grad_x is the gradient of what a phase read. */
typedef struct {
    int64_t start, n;
    int64_t groups;       /* how many weight sets are in use */
    const int64_t *group; /* [groups, 3]: see multiply */
    void *h, *m, *next_h, *next_m;
    void *grad_h, *grad_m, *next_grad_h, *next_grad_m;
    void *x[2], *gates[2], *grad_x[2];
} Step;

/* The matrices of a phase in the layout of product.h, and the first column of H that they multiply. */
typedef struct {
    int64_t K, N, column;
    const float *panels;
} Product;

/* Waking a thread does not pay for small steps. */
#define ROWS                                                                                           \
    _Pragma("omp parallel for schedule(static) num_threads(grid->threads) if (rows * grid->H > 8192)") \
    for (int64_t r = 0; r < rows; r++)
#define SIMD _Pragma("omp simd")
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(f) JOIN(f, LOW)
#define MATH(f) JOIN(f, REAL)

typedef uint16_t bfloat16;

static inline float load_bfloat16(bfloat16 x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

static inline bfloat16 store_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16; /* to nearest, ties to even */
    return x == x ? bits : 0x7fc0;
}

/* A sigmoid gate in low precision: g, or g - 1 if that is closer to 0. So both g and 1 - g, by which the
 * backward pass multiplies, keep their precision. */
static inline float decode_sigmoid_bfloat16(bfloat16 x) {
    float g = load_bfloat16(x);
    return g < 0 ? 1 + g : g;
}
static inline float complement_bfloat16(bfloat16 x) {
    float g = load_bfloat16(x);
    return g < 0 ? -g : 1 - g;
}
static inline bfloat16 encode_sigmoid_bfloat16(float g) {
    float shifted = g - 1;
    return store_bfloat16(g < 0.5f ? g : shifted > -1e-30f ? -1e-30f : shifted);
}

/* A content gate in low precision: c, or beyond a half its distance from 1 or -1, with the sign of c, times
 * 2^64 to distinguish it from c. So both c and 1 - c c keep their precision. */
static inline float decode_tanh_bfloat16(bfloat16 x) {
    float c = load_bfloat16(x);
    return fabsf(c) < 1 ? c : copysignf(1 - fabsf(c) * 0x1p-64f, c);
}
static inline float tanh_slope_bfloat16(bfloat16 x) {
    float c = fabsf(load_bfloat16(x));
    float distance = c < 1 ? 1 - c : c * 0x1p-64f;
    return distance * (2 - distance);
}
static inline bfloat16 encode_tanh_bfloat16(float c) {
    float distance = 1 - fabsf(c), scaled = distance * 0x1p64f;
    return store_bfloat16(distance > 0.5f ? c : copysignf(scaled < 1 ? 1 : scaled, c));
}
#define PLAIN(type)                                                    \
    static inline type load_##type(type x) { return x; }               \
    static inline type store_##type(type x) { return x; }              \
    static inline type decode_sigmoid_##type(type g) { return g; }     \
    static inline type complement_##type(type g) { return 1 - g; }     \
    static inline type encode_sigmoid_##type(type g) { return g; }     \
    static inline type decode_tanh_##type(type c) { return c; }        \
    static inline type tanh_slope_##type(type c) { return 1 - c * c; } \
    static inline type encode_tanh_##type(type c) { return c; }
PLAIN(float)
PLAIN(double)

/* exp, sigmoid and tanh of float in a form that compilers vectorise, with the polynomials of Cephes'
 * expf and tanhf. tests/test_native.py allows errors of 4 units in the last place. NaN propagates. */
static inline float exp_float(float x) {
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.0f ? -87.0f : x;
    float shifted = x * 1.44269504088896341f + 12582912.0f; /* its last bits: the rounded integer */
    int32_t bits;
    memcpy(&bits, &shifted, 4);
    float n = shifted - 12582912.0f;
    float f = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * f * f + f + 1.0f;
    int32_t power = (int32_t)((uint32_t)(bits - 0x4b400000 + 127) << 23);
    float scale;
    memcpy(&scale, &power, 4);
    return p * scale;
}

static inline float sigmoid_float(float x) { return 1.0f / (1.0f + exp_float(-x)); }

static inline float tanh_float(float x) {
    float z = x * x, a = fabsf(x);
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * x + x;
    float q = copysignf(1.0f - 2.0f / (exp_float(2.0f * a) + 1.0f), x);
    return a < 0.625f ? p : q;
}

static inline double sigmoid_double(double x) { return 1.0 / (1.0 + exp(-x)); }
static inline double tanh_double(double x) { return tanh(x); }

/* For tests. */
void map_sigmoid(const float *x, float *y, int64_t n) {
    SIMD for (int64_t i = 0; i < n; i++) y[i] = sigmoid_float(x[i]);
}
void map_tanh(const float *x, float *y, int64_t n) {
    SIMD for (int64_t i = 0; i < n; i++) y[i] = tanh_float(x[i]);
}

#include "product.h"
#include "step.h"

/* layout.py checks these sizes when the kernel is loaded. */
void struct_sizes(int64_t *sizes, int64_t count) {
    const int64_t found[] = {sizeof(Transform), sizeof(Grid), sizeof(Step), sizeof(Product), sizeof(Stepper), PANEL};
    for (int64_t i = 0; i < count && i < 6; i++) sizes[i] = found[i];
}

#define REAL float
#define LOW float
#include "kernel.c"
#undef LOW
#define LOW bfloat16
#include "kernel.c"
#undef LOW
#undef REAL
#define REAL double
#define LOW double
#include "kernel.c"

/* Successive steps with products of product.h. For small steps, one call each from Python takes too long. */
void run(const Grid *grid, const Step *step, int64_t steps, const Product *product) {
    for (const Step *end = step + steps; step < end; step++) {
        enter_float(grid, step);
        for (int64_t p = 0; p < grid->phases; p++) {
            if (step->x[p] != step->h) read_float(grid, step, p);
            multiply(step->groups, step->group, grid->batch, product[p].K, product[p].N, product[p].panels,
                     (float *)step->x[p] + product[p].column, grid->pitch_h, step->gates[p], grid->pitch_g[p],
                     grid->threads);
            forward_float(grid, step, p);
        }
    }
}

/* Their backward, the last step first. */
void run_back(const Grid *grid, const Step *first, int64_t steps, const Product *product) {
    for (const Step *step = first + steps; step-- > first;) {
        for (int64_t p = grid->phases; p-- > 0;) {
            backward_float(grid, step, p);
            multiply(step->groups, step->group, grid->batch, product[p].K, product[p].N, product[p].panels,
                     step->gates[p], grid->pitch_g[p], (float *)step->grad_x[p] + product[p].column, grid->pitch_h,
                     grid->threads);
        }
        finish_float(grid, step);
    }
}

#else

#define LOAD(x) JOIN(load, LOW)(x)
#define STORE(x) JOIN(store, LOW)(x)
#define DECODE_SIGMOID(g) JOIN(decode_sigmoid, LOW)(g)
#define COMPLEMENT(g) JOIN(complement, LOW)(g)
#define ENCODE_SIGMOID(g) JOIN(encode_sigmoid, LOW)(g)
#define DECODE_TANH(c) JOIN(decode_tanh, LOW)(c)
#define TANH_SLOPE(c) JOIN(tanh_slope, LOW)(c)
#define ENCODE_TANH(c) JOIN(encode_tanh, LOW)(c)

/* Where a vector of block n, sample b goes: to a row of the next step, or out through the side. In the
 * backward pass, where its gradient comes from; null if there is none. */
static inline REAL *NAME(beyond)(const Grid *grid, const Transform *t, int64_t n, int64_t b, void *next,
                                 int64_t columns, int64_t column, void *out) {
    const int64_t successor = t->successor[n];
    if (successor >= 0) return (REAL *)next + (successor * grid->batch + b) * columns + column;
    return out ? (REAL *)out + (t->exit[n] * grid->batch + b) * t->d : 0;
}

static inline int NAME(masked)(const Grid *grid, int64_t row) { return grid->mask && !grid->mask[row]; }

/* Copies the incoming sides into the rows of a step. */
void NAME(enter)(const Grid *grid, const Step *step) {
    const int64_t B = grid->batch;
    for (int64_t i = 0; i < grid->transforms; i++) {
        const Transform *t = &grid->transform[i];
        for (int64_t n = 0; n < step->n; n++) {
            if (!t->enters[step->start + n]) continue;
            const int64_t side = t->face[step->start + n] * B * t->d;
            for (int64_t b = 0; b < B; b++) {
                const int64_t r = n * B + b, from = side + b * t->d;
                memcpy((REAL *)step->h + r * grid->pitch_h + t->hidden, (REAL *)t->in_h + from, t->d * sizeof(REAL));
                if (t->kind == LSTM)
                    memcpy((REAL *)step->m + r * grid->pitch_m + t->memory, (REAL *)t->in_m + from, t->d * sizeof(REAL));
            }
        }
    }
}

/* Copies vectors as a phase reads them: after dropout. */
static inline void NAME(drop)(const Grid *grid, int64_t phase, int64_t row, int64_t column, int64_t d,
                              const REAL *restrict h, LOW *restrict x) {
    if (grid->kept) {
        const int64_t block = phase * grid->blocks + row / grid->batch;
        const REAL *restrict scale = (const REAL *)grid->scale + block * grid->H + column;
        const uint8_t *restrict kept = grid->kept + (phase * grid->blocks * grid->batch + row) * grid->H + column;
        SIMD for (int64_t j = 0; j < d; j++) x[j] = STORE(h[j] * (kept[j] * scale[j]));
    } else {
        SIMD for (int64_t j = 0; j < d; j++) x[j] = STORE(h[j]);
    }
}

/* Copies what a phase multiplies by its weights. For a second phase, `forward` has already written the
 * results of the first (Eq. 7). */
void NAME(read)(const Grid *grid, const Step *step, int64_t phase) {
    const int64_t B = grid->batch, H = grid->pitch_h, rows = step->n * B;
    ROWS for (int64_t i = 0; i < grid->transforms; i++) {
        const Transform *t = &grid->transform[i];
        const int64_t at = r * H + t->hidden;
        if (t->phase >= phase)
            NAME(drop)(grid, phase, step->start * B + r, t->hidden, t->d, (REAL *)step->h + at, (LOW *)step->x[phase] + at);
    }
}

/* Eq. 1 from W H on; the gates are activated in place. */
static inline void NAME(lstm)(int64_t d, int64_t standard, LOW *restrict g, const REAL *restrict bias,
                              const REAL *restrict m, REAL *restrict new_m, REAL *restrict new_h) {
    SIMD for (int64_t j = 0; j < d; j++) {
        REAL u = MATH(sigmoid)(LOAD(g[j]) + bias[j]);
        REAL f = MATH(sigmoid)(LOAD(g[d + j]) + bias[d + j]);
        REAL o = MATH(sigmoid)(LOAD(g[2 * d + j]) + bias[2 * d + j]);
        REAL c = MATH(tanh)(LOAD(g[3 * d + j]) + bias[3 * d + j]);
        REAL y = f * m[j] + u * c;
        REAL z = MATH(tanh)(standard ? y : o * y);
        g[j] = ENCODE_SIGMOID(u);
        g[d + j] = ENCODE_SIGMOID(f);
        g[2 * d + j] = ENCODE_SIGMOID(o);
        g[3 * d + j] = ENCODE_TANH(c);
        new_m[j] = y;
        new_h[j] = standard ? o * z : z;
    }
}

/* Its backward; the gates are overwritten with the gradients of their preactivations. */
static inline void NAME(lstm_backward)(int64_t d, int64_t standard, LOW *restrict g, const REAL *restrict m,
                                       const REAL *restrict grad_h, const REAL *restrict grad_new_m,
                                       REAL *restrict grad_m) {
    SIMD for (int64_t j = 0; j < d; j++) {
        REAL u = DECODE_SIGMOID(g[j]), f = DECODE_SIGMOID(g[d + j]), o = DECODE_SIGMOID(g[2 * d + j]);
        REAL c = DECODE_TANH(g[3 * d + j]);
        REAL not_u = COMPLEMENT(g[j]), not_f = COMPLEMENT(g[d + j]), not_o = COMPLEMENT(g[2 * d + j]);
        REAL slope_c = TANH_SLOPE(g[3 * d + j]);
        REAL y = f * m[j] + u * c;
        REAL z = MATH(tanh)(standard ? y : o * y);
        REAL grad_z = (1 - z * z) * grad_h[j];
        REAL grad_o = standard ? grad_h[j] * z : grad_z * y;
        REAL grad_y = grad_new_m[j] + grad_z * o;
        g[j] = STORE(grad_y * c * u * not_u);
        g[d + j] = STORE(grad_y * m[j] * f * not_f);
        g[2 * d + j] = STORE(grad_o * o * not_o);
        g[3 * d + j] = STORE(grad_y * u * slope_c);
        grad_m[j] = grad_y * f;
    }
}

/* The GRU of cells/gru.py. Rows: r, z, the part of n from the other hidden vectors, and that from its own. */
static inline void NAME(gru)(int64_t d, LOW *restrict g, const REAL *restrict bias, const REAL *restrict h,
                             REAL *restrict new_h) {
    SIMD for (int64_t j = 0; j < d; j++) {
        REAL r = MATH(sigmoid)(LOAD(g[j]) + bias[j]);
        REAL z = MATH(sigmoid)(LOAD(g[d + j]) + bias[d + j]);
        REAL own = LOAD(g[3 * d + j]) + bias[3 * d + j];
        REAL n = MATH(tanh)(LOAD(g[2 * d + j]) + bias[2 * d + j] + r * own);
        g[j] = ENCODE_SIGMOID(r);
        g[d + j] = ENCODE_SIGMOID(z);
        g[2 * d + j] = ENCODE_TANH(n);
        g[3 * d + j] = STORE(own);
        new_h[j] = n + z * (h[j] - n);
    }
}

/* Its backward; grad_old is the gradient of the old hidden vector, without that by way of H. */
static inline void NAME(gru_backward)(int64_t d, LOW *restrict g, const REAL *restrict h,
                                      const REAL *restrict grad_h, REAL *restrict grad_old) {
    SIMD for (int64_t j = 0; j < d; j++) {
        REAL r = DECODE_SIGMOID(g[j]), z = DECODE_SIGMOID(g[d + j]), n = DECODE_TANH(g[2 * d + j]);
        REAL own = LOAD(g[3 * d + j]);
        REAL not_r = COMPLEMENT(g[j]), not_z = COMPLEMENT(g[d + j]), slope_n = TANH_SLOPE(g[2 * d + j]);
        REAL grad_n = grad_h[j] * not_z * slope_n;
        g[j] = STORE(grad_n * own * r * not_r);
        g[d + j] = STORE(grad_h[j] * (h[j] - n) * z * not_z);
        g[2 * d + j] = STORE(grad_n);
        g[3 * d + j] = STORE(grad_n * r);
        grad_old[j] = grad_h[j] * z;
    }
}

/* Eq. 8; the preactivations stay in place. */
static inline void NAME(transfer)(int64_t d, int64_t kind, LOW *restrict g, const REAL *restrict bias,
                                  REAL *restrict new_h) {
    SIMD for (int64_t j = 0; j < d; j++) {
        REAL x = LOAD(g[j]) + bias[j];
        REAL y = MATH(tanh)(x);
        g[j] = STORE(x);
        new_h[j] = kind == TANH ? y : kind == RELU ? (x < 0 ? 0 : x) : x;
    }
}

static inline void NAME(transfer_backward)(int64_t d, int64_t kind, LOW *restrict g, const REAL *restrict grad_h) {
    SIMD for (int64_t j = 0; j < d; j++) {
        REAL x = LOAD(g[j]);
        REAL y = MATH(tanh)(x);
        g[j] = STORE(grad_h[j] * (kind == TANH ? 1 - y * y : kind == RELU ? (x > 0 ? 1 : 0) : 1));
    }
}

/* A phase of a step, after its product: new vectors are written where they are read next. */
void NAME(forward)(const Grid *grid, const Step *step, int64_t phase) {
    const int64_t B = grid->batch, H = grid->pitch_h, M = grid->pitch_m, G = grid->pitch_g[phase], rows = step->n * B;
    ROWS for (int64_t i = 0; i < grid->transforms; i++) {
        const Transform *t = &grid->transform[i];
        if (t->phase != phase) continue;
        const int64_t n = step->start + r / B, b = r % B, row = step->start * B + r;
        LOW *g = (LOW *)step->gates[phase] + r * G + t->gates;
        const REAL *bias = (const REAL *)grid->bias[phase] + grid->weight_set[n] * grid->G[phase] + t->gates;
        const REAL *h = (const REAL *)step->h + r * H + t->hidden, *m = (const REAL *)step->m + r * M + t->memory;
        REAL unused_h[t->d], unused_m[t->d];
        REAL *new_h = NAME(beyond)(grid, t, n, b, step->next_h, H, t->hidden, t->out_h);
        REAL *new_m = NAME(beyond)(grid, t, n, b, step->next_m, M, t->memory, t->out_m);
        if (!new_h) new_h = unused_h;
        if (!new_m) new_m = unused_m;
        if (NAME(masked)(grid, row)) {
            memcpy(new_h, h, t->d * sizeof(REAL));
            if (t->kind == LSTM) memcpy(new_m, m, t->d * sizeof(REAL));
        } else if (t->kind == LSTM) {
            NAME(lstm)(t->d, t->standard, g, bias, m, new_m, new_h);
        } else if (t->kind == GRU) {
            NAME(gru)(t->d, g, bias, h, new_h);
        } else {
            NAME(transfer)(t->d, t->kind, g, bias, new_h);
        }
        if (t->blocks_h) memcpy((REAL *)t->blocks_h + row * t->d, new_h, t->d * sizeof(REAL));
        if (t->blocks_m) memcpy((REAL *)t->blocks_m + row * t->d, new_m, t->d * sizeof(REAL));
        if (phase + 1 < grid->phases)
            NAME(drop)(grid, phase + 1, row, t->hidden, t->d, new_h, (LOW *)step->x[phase + 1] + r * H + t->hidden);
    }
}

static inline void NAME(add)(int64_t d, const REAL *restrict from, REAL *restrict to) {
    SIMD for (int64_t j = 0; j < d; j++) to[j] += from[j];
}

/* Adds the gradient of vectors that a phase has read, through its dropout. */
static inline void NAME(add_read)(const Grid *grid, int64_t phase, int64_t row, int64_t column, int64_t d,
                                  const LOW *restrict from, REAL *restrict to) {
    if (grid->kept) {
        const int64_t block = phase * grid->blocks + row / grid->batch;
        const REAL *restrict scale = (const REAL *)grid->scale + block * grid->H + column;
        const uint8_t *restrict kept = grid->kept + (phase * grid->blocks * grid->batch + row) * grid->H + column;
        SIMD for (int64_t j = 0; j < d; j++) to[j] += LOAD(from[j]) * (kept[j] * scale[j]);
    } else {
        SIMD for (int64_t j = 0; j < d; j++) to[j] += LOAD(from[j]);
    }
}

/* The gradient of a vector that left a block: from where it went, and from the trace. */
static inline void NAME(gather)(int64_t d, const REAL *beyond, const void *blocks, int64_t row, REAL *to) {
    if (beyond) memcpy(to, beyond, d * sizeof(REAL));
    else memset(to, 0, d * sizeof(REAL));
    if (blocks) NAME(add)(d, (const REAL *)blocks + row * d, to);
}

/* A phase of a step, before its product: from gradients of the new vectors to those of the gates'
 * preactivations and of the memories. */
void NAME(backward)(const Grid *grid, const Step *step, int64_t phase) {
    const int64_t B = grid->batch, H = grid->pitch_h, M = grid->pitch_m, G = grid->pitch_g[phase], rows = step->n * B;
    ROWS for (int64_t i = 0; i < grid->transforms; i++) {
        const Transform *t = &grid->transform[i];
        const int64_t n = step->start + r / B, b = r % B, row = step->start * B + r, d = t->d;
        const int masked = NAME(masked)(grid, row);
        /* A masked block may have read NaN, and 0 * NaN would spoil the gradient of the weights. */
        if (masked) memset((LOW *)step->x[phase] + r * H + t->hidden, 0, d * sizeof(LOW));
        if (t->phase != phase) continue;
        LOW *g = (LOW *)step->gates[phase] + r * G + t->gates;
        if (masked) memset(g, 0, (t->kind == LSTM || t->kind == GRU ? 4 : 1) * d * sizeof(LOW));
        REAL grad_h[d], grad_new_m[d];
        if (!masked) {
            NAME(gather)(d, NAME(beyond)(grid, t, n, b, step->next_grad_h, H, t->hidden, t->out_h), t->blocks_h, row, grad_h);
            if (phase + 1 < grid->phases)
                NAME(add_read)(grid, phase + 1, row, t->hidden, d, (LOW *)step->grad_x[phase + 1] + r * H + t->hidden, grad_h);
        }
        if (t->kind == GRU) {
            const int64_t at = r * H + t->hidden;
            if (!masked) NAME(gru_backward)(d, g, (REAL *)step->h + at, grad_h, (REAL *)step->grad_h + at);
            continue;
        }
        if (t->kind != LSTM) {
            if (!masked) NAME(transfer_backward)(d, t->kind, g, grad_h);
            continue;
        }
        REAL *grad_m = (REAL *)step->grad_m + r * M + t->memory;
        NAME(gather)(d, NAME(beyond)(grid, t, n, b, step->next_grad_m, M, t->memory, t->out_m), t->blocks_m, row, grad_new_m);
        if (masked) memcpy(grad_m, grad_new_m, d * sizeof(REAL));
        else NAME(lstm_backward)(d, t->standard, g, (REAL *)step->m + r * M + t->memory, grad_h, grad_new_m, grad_m);
        if (t->enters[n]) memcpy((REAL *)t->in_m + (t->face[n] * B + b) * d, grad_m, d * sizeof(REAL));
    }
}

/* After the products of all phases: the gradients of the incoming hidden vectors. */
void NAME(finish)(const Grid *grid, const Step *step) {
    const int64_t B = grid->batch, H = grid->pitch_h, rows = step->n * B;
    /* With a single phase and nothing to add, the product has written the gradient in place. */
    const int in_place = step->grad_x[0] == step->grad_h;
    ROWS for (int64_t i = 0; i < grid->transforms; i++) {
        const Transform *t = &grid->transform[i];
        const int64_t n = step->start + r / B, b = r % B, row = step->start * B + r, d = t->d;
        REAL *grad_h = (REAL *)step->grad_h + r * H + t->hidden;
        if (NAME(masked)(grid, row)) {
            NAME(gather)(d, NAME(beyond)(grid, t, n, b, step->next_grad_h, H, t->hidden, t->out_h), t->blocks_h, row, grad_h);
        } else if (!in_place) {
            if (t->kind != GRU) memset(grad_h, 0, d * sizeof(REAL)); /* For a GRU, `backward` has written the first part. */
            for (int64_t phase = 0; phase <= t->phase; phase++)
                NAME(add_read)(grid, phase, row, t->hidden, d, (LOW *)step->grad_x[phase] + r * H + t->hidden, grad_h);
        }
        if (t->enters[n]) memcpy((REAL *)t->in_h + (t->face[n] * B + b) * d, grad_h, d * sizeof(REAL));
    }
}

#undef LOAD
#undef STORE
#undef DECODE_SIGMOID
#undef COMPLEMENT
#undef ENCODE_SIGMOID
#undef DECODE_TANH
#undef TANH_SLOPE
#undef ENCODE_TANH
#endif
