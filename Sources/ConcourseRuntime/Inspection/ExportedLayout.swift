internal import CConcourse

/// Fills the record that `concourse report` reads from outside.
package enum ExportedLayout {
  /// Exports a type whose objects or values the command must recognise.
  package static func export(_ type: any ~Copyable.Type, at index: Int) {
    withUnsafeMutableBytes(of: &concourse_inspection_get().pointee.types) {
      // SAFETY: a metatype is the address of the type's metadata.
      $0.storeBytes(
        of: unsafeBitCast(type, to: UInt.self), toByteOffset: index * MemoryLayout<UInt>.stride, as: UInt.self
      )
    }
  }

  // Without an array, whose type Swift's runtime would have to make.
  fileprivate static func export() {
    export(DispatchQueue.self, at: 0)
    export(DispatchSerialQueue.self, at: 1)
    export(DispatchConcurrentQueue.self, at: 2)
    export(DispatchWorkloop.self, at: 3)
    export(RunLoopQueue.self, at: 4)
    export(GlobalQueue.self, at: 5)
    export(QueueExtras.self, at: 6)
    export(RootQueue.self, at: 7)
    export(Band.self, at: 8)
    export(DispatchGroup.self, at: 9)
    export(DispatchSemaphore.self, at: 10)
    export(DispatchWorkItem.self, at: 11)
    export(ParallelLoop.self, at: 12)
    export(MainThread.self, at: 13)
    export(WorkNode.self, at: 14)
    export(WorkerRecord.self, at: 15)
    export(SyncWaiter.self, at: 16)
    export(Frame.self, at: 17)
    export(Monitor.self, at: 18)
    export(BlockedThreads.self, at: 19)
    concourse_inspection_get().pointee.shards = UInt64(Runtime.shared.bands.count / Inspection.Band.kinds)
    concourse_inspection_get().pointee.roots = UnsafeRawPointer(Runtime.shared.roots)
    let (width, cap, threads) = PoolSize.addresses
    concourse_inspection_get().pointee.width = width
    concourse_inspection_get().pointee.cap = cap
    concourse_inspection_get().pointee.threads = threads
  }
}

/// Called when the first queue is made.
@c(concourse_export_layout)
func exportLayout() { ExportedLayout.export() }
