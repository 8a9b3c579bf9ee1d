/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - work that is put together first and run as a whole.
 *
 * Nodes run in the order in which they were added, which is one of those their dependencies allow. Memory nodes are
 * promised an address when they are added and given memory when the graph first runs; the memory stays with the
 * device until it is trimmed. A stream that captures writes its launches down as nodes.
 */
#include "simgpu/cuda/internal.h"

struct CUgraphNode_st {
    CUgraph graph;
    int type;
    struct bh_cu_work work;
    uint64_t at, bytes; /* of memory nodes */
};

struct CUgraph_st {
    BH_VEC(CUgraphNode) nodes;
};

struct CUgraphExec_st {
    CUcontext ctx;
    bool grouped; /* the UVM file made a group for it */
    BH_VEC(struct CUgraphNode_st) nodes;
};

/* --- graphs --- */

static CUgraph graph_new(void)
{
    CUgraph g = bh_alloc(1, sizeof(*g));
    bh_cu_handle_add(BH_CU_GRAPH_HANDLE, g);
    return g;
}

int cuGraphCreate(CUgraph *ret, unsigned flags)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !ret || flags)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = graph_new();
    return CUDA_SUCCESS;
}

void bh_cu_graph_drop(CUgraph graph)
{
    if (!bh_cu_handle_remove(BH_CU_GRAPH_HANDLE, graph))
        return;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        bh_cu_handle_remove(BH_CU_NODE, graph->nodes.at[i]);
        free(graph->nodes.at[i]);
    }
    bh_vec_fini(&graph->nodes);
    free(graph);
}

static int find(CUgraph graph)
{
    int rc = bh_cu_enter();
    return rc ? rc : bh_cu_handle_ok(BH_CU_GRAPH_HANDLE, graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuGraphDestroy(CUgraph graph)
{
    BH_CU_CALL();
    int rc = find(graph);
    if (!rc)
        bh_cu_graph_drop(graph);
    return rc;
}

/* What comes before must be of the same graph; it was added earlier, so it runs earlier. */
static int node_add(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
                    const struct CUgraphNode_st *what)
{
    int rc = find(graph);
    if (rc || !ret || (n && !after))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (!bh_cu_handle_ok(BH_CU_NODE, after[i]) || after[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode node = bh_alloc(1, sizeof(*node));
    *node = *what;
    node->graph = graph;
    pthread_mutex_lock(&cu.lock);
    *bh_vec_push(&graph->nodes) = node;
    pthread_mutex_unlock(&cu.lock);
    bh_cu_handle_add(BH_CU_NODE, node);
    *ret = node;
    return CUDA_SUCCESS;
}

int cuGraphAddKernelNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
                         const CUDA_KERNEL_NODE_PARAMS *params)
{
    BH_CU_CALL();
    struct CUgraphNode_st node = {.type = CU_NODE_KERNEL};
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = bh_cu_work_of(params->function, params->params, params->extra, &node.work);
    return rc ? rc : node_add(ret, graph, after, n, &node);
}

int cuGraphAddKernelNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
                            const CUDA_KERNEL_NODE_PARAMS *params)
{
    BH_CU_CALL();
    CUDA_KERNEL_NODE_PARAMS p;
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    p = *params;
    p.function = p.function ? p.function : (CUfunction)p.kernel;
    return cuGraphAddKernelNode(ret, graph, after, n, &p);
}

int cuGraphAddEmptyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n)
{
    BH_CU_CALL();
    return node_add(ret, graph, after, n, &(struct CUgraphNode_st){.type = CU_NODE_EMPTY});
}

int cuGraphAddMemAllocNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
                           CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = find(graph);
    if (rc || !params || params->bytes == 0 || params->bytes > UINT64_MAX / 4 ||
        params->pool.type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        params->pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = bh_cu_device(params->pool.location.id, &d);
    if (rc)
        return rc;
    const struct CUgraphNode_st node = {
        .type = CU_NODE_MEM_ALLOC, .bytes = params->bytes, .at = bh_cu_graph_address(params->bytes)};
    if (!node.at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = node_add(ret, graph, after, n, &node);
    if (!rc)
        params->ret_pointer = node.at;
    return rc;
}

int cuGraphAddMemFreeNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n, CUdeviceptr at)
{
    BH_CU_CALL();
    if (!at)
        return CUDA_ERROR_INVALID_VALUE;
    return node_add(ret, graph, after, n, &(struct CUgraphNode_st){.type = CU_NODE_MEM_FREE, .at = at});
}

int cuGraphGetNodes(CUgraph graph, CUgraphNode *ret, size_t *n)
{
    BH_CU_CALL();
    int rc = find(graph);
    if (rc || !n)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    const size_t room = *n;
    *n = !ret || graph->nodes.n < room ? graph->nodes.n : room;
    for (size_t i = 0; ret && i < room; i++)
        ret[i] = i < graph->nodes.n ? graph->nodes.at[i] : NULL;
    return CUDA_SUCCESS;
}

int cuGraphNodeGetType(CUgraphNode node, int *ret)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !ret || !bh_cu_handle_ok(BH_CU_NODE, node))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = node->type;
    return CUDA_SUCCESS;
}

/* --- running --- */

int cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, uint64_t flags)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : find(graph);
    if (rc || !ret || flags > 15)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    CUgraphExec e = bh_alloc(1, sizeof(*e));
    e->ctx = ctx;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        *bh_vec_push(&e->nodes) = *graph->nodes.at[i];
        e->grouped = e->grouped || graph->nodes.at[i]->type == CU_NODE_KERNEL;
    }
    if (e->grouped)
        (void)bh_cu_uvm(ctx->uvm, UVM_CREATE_RANGE_GROUP, 0, 0);
    bh_cu_handle_add(BH_CU_EXEC, e);
    *ret = e;
    return CUDA_SUCCESS;
}

int cuGraphInstantiate_v2(CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_bad, char *log, size_t log_size)
{
    BH_CU_CALL();
    if (ret_bad)
        *ret_bad = NULL;
    if (log && log_size)
        log[0] = '\0';
    return cuGraphInstantiateWithFlags(ret, graph, 0);
}
BH_CU_ALIAS(cuGraphInstantiate, cuGraphInstantiate_v2);

static int find_exec(CUgraphExec exec)
{
    CUcontext ctx;
    int rc = bh_cu_enter();
    if (rc || !bh_cu_handle_ok(BH_CU_EXEC, exec))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    return bh_cu_context(exec->ctx, &ctx);
}

int cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find_exec(exec);
    return rc ? rc : bh_cu_stream(exec->ctx, stream, &s);
}

static int run_node(CUstream s, const struct CUgraphNode_st *node)
{
    struct bh_cu_alloc a;
    switch (node->type) {
    case CU_NODE_KERNEL:
        return bh_cu_submit(s, node->work.ns, node->work.fault);
    case CU_NODE_MEM_ALLOC:
        return bh_cu_graph_back(s->ctx, node->at, node->bytes);
    case CU_NODE_MEM_FREE:
        if (!bh_cu_alloc_find(node->at, &a) || a.base != node->at || a.what != BH_CU_GRAPH ||
            !bh_cu_alloc_take(node->at, &a))
            return CUDA_ERROR_INVALID_VALUE;
        return bh_cu_release(&a);
    default:
        return CUDA_SUCCESS;
    }
}

int cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find_exec(exec);
    rc = rc ? rc : bh_cu_stream(exec->ctx, stream, &s);
    if (!rc && s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (size_t i = 0; !rc && i < exec->nodes.n; i++)
        rc = run_node(s, &exec->nodes.at[i]);
    return rc;
}

int cuGraphExecDestroy(CUgraphExec exec)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !bh_cu_handle_remove(BH_CU_EXEC, exec))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (exec->grouped && bh_cu_handle_ok(BH_CU_CONTEXT, exec->ctx))
        (void)bh_cu_uvm(exec->ctx->uvm, UVM_DESTROY_RANGE_GROUP, 0, 0);
    bh_vec_fini(&exec->nodes);
    free(exec);
    return CUDA_SUCCESS;
}

/* --- capture --- */

void bh_cu_capture_kernel(CUgraph graph, struct bh_cu_work work)
{
    CUgraphNode node;
    (void)node_add(&node, graph, NULL, 0, &(struct CUgraphNode_st){.type = CU_NODE_KERNEL, .work = work});
}

static int find_stream(CUstream given, CUstream *ret)
{
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    return rc ? rc : bh_cu_stream(ctx, given, ret);
}

int cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find_stream(stream, &s);
    if (rc || mode < 0 || mode > 2)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (s == s->ctx->null_stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    s->capture = graph_new();
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuStreamBeginCapture, cuStreamBeginCapture_v2);

int cuStreamEndCapture(CUstream stream, CUgraph *ret)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find_stream(stream, &s);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    *ret = s->capture;
    s->capture = NULL;
    return CUDA_SUCCESS;
}

int cuStreamIsCapturing(CUstream stream, int *ret)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find_stream(stream, &s);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = s->capture ? CU_CAPTURE_ACTIVE : CU_CAPTURE_NONE;
    return CUDA_SUCCESS;
}
