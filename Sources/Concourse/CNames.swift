// The C names of the classes in Apple's Dispatch module, for code that uses them.
// swift-format-ignore-file: TypeNamesShouldBeCapitalized

public import ConcourseEvents

/// C name of `DispatchObject`.
public typealias dispatch_object_t = DispatchObject
/// C name of `DispatchQueue`.
public typealias dispatch_queue_t = DispatchQueue
/// C name of the main queue's class.
public typealias dispatch_queue_main_t = DispatchQueue
/// C name of the global queues' class.
public typealias dispatch_queue_global_t = DispatchQueue
/// C name of `DispatchSerialQueue`.
public typealias dispatch_queue_serial_t = DispatchSerialQueue
/// C name of `DispatchConcurrentQueue`.
public typealias dispatch_queue_concurrent_t = DispatchConcurrentQueue
/// C name of the class that serial queues and workloops share.
public typealias dispatch_queue_serial_executor_t = _DispatchSerialExecutorQueue
/// C name of `DispatchQueue.Attributes`.
public typealias dispatch_queue_attr_t = DispatchQueue.Attributes
/// C name of `DispatchWorkloop`.
public typealias dispatch_workloop_t = DispatchWorkloop
/// C name of `DispatchGroup`.
public typealias dispatch_group_t = DispatchGroup
/// C name of `DispatchSemaphore`.
public typealias dispatch_semaphore_t = DispatchSemaphore
/// C name of `DispatchSource`.
public typealias dispatch_source_t = DispatchSource
/// C name of `DispatchIO`.
public typealias dispatch_io_t = DispatchIO
/// C name of `DispatchData`.
public typealias dispatch_data_t = DispatchData
