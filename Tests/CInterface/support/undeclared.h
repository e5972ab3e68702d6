// Functions that the toolchain's library exports without declaring them, if programs call them that are
// compiled against both sets of headers. Real programs declare such functions in the same way.

#ifndef UNDECLARED_H
#define UNDECLARED_H

#ifdef __cplusplus
extern "C" {
#endif

extern void dispatch_async_and_wait_f(dispatch_queue_t, void *, dispatch_function_t);
extern void dispatch_barrier_async_and_wait_f(dispatch_queue_t, void *, dispatch_function_t);
extern void dispatch_set_qos_class_floor(dispatch_object_t, dispatch_qos_class_t, int);

typedef bool (*dispatch_data_applier_function_t)(void *, dispatch_data_t, size_t, const void *, size_t);
extern dispatch_data_t dispatch_data_create_f(const void *, size_t, dispatch_queue_t, dispatch_function_t);
extern bool dispatch_data_apply_f(dispatch_data_t, void *, dispatch_data_applier_function_t);

extern void dispatch_read_f(int, size_t, dispatch_queue_t, void *, void (*)(void *, dispatch_data_t, int));
extern void dispatch_write_f(int, dispatch_data_t, dispatch_queue_t, void *,
                             void (*)(void *, dispatch_data_t, int));
typedef void (*dispatch_io_handler_function_t)(void *, bool, dispatch_data_t, int);
extern dispatch_io_t dispatch_io_create_f(dispatch_io_type_t, int, dispatch_queue_t, void *,
                                          void (*)(void *, int));
extern dispatch_io_t dispatch_io_create_with_path_f(dispatch_io_type_t, const char *, int, mode_t,
                                                    dispatch_queue_t, void *, void (*)(void *, int));
extern dispatch_io_t dispatch_io_create_with_io_f(dispatch_io_type_t, dispatch_io_t, dispatch_queue_t, void *,
                                                  void (*)(void *, int));
extern void dispatch_io_read_f(dispatch_io_t, off_t, size_t, dispatch_queue_t, void *,
                               dispatch_io_handler_function_t);
extern void dispatch_io_write_f(dispatch_io_t, off_t, dispatch_data_t, dispatch_queue_t, void *,
                                dispatch_io_handler_function_t);
extern void dispatch_io_barrier_f(dispatch_io_t, void *, dispatch_function_t);

#ifdef __BLOCKS__
extern void dispatch_async_and_wait(dispatch_queue_t, dispatch_block_t);
extern void dispatch_barrier_async_and_wait(dispatch_queue_t, dispatch_block_t);
#endif

typedef dispatch_queue_t dispatch_workloop_t;
extern dispatch_workloop_t dispatch_workloop_create(const char *);
extern dispatch_workloop_t dispatch_workloop_create_inactive(const char *);
extern void dispatch_workloop_set_autorelease_frequency(dispatch_workloop_t, dispatch_autorelease_frequency_t);

#ifdef __cplusplus
}
#endif

#endif
