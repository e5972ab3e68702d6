// The module by which Swift sees the C headers lives beside the toolchain's own.
import CConcourseDispatch
import CConcourseDispatch.Private
import Dispatch
import Foundation

let queue = CConcourseDispatch.dispatch_queue_create("swift", nil)
CConcourseDispatch.dispatch_sync_f(queue, nil) { _ in }
print(QOS_CLASS_UTILITY, _dispatch_is_multithreaded(), DispatchQueue.main.label)
