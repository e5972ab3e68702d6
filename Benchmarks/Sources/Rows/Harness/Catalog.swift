extension Row {
  /// Every row, in the order in which the report shows them.
  static let all: [Row] = [
    .serialAsyncOneProducer,
    .syncUncontended,
    .syncTwoThreadsContending,
    .concurrentQueueSyncRead,
    .barrierSyncUncontended,
    .globalAsyncGroupWait,
    .concurrentAsyncThenBarrierSync,
    .concurrentPerformEmptyBody,
    .semaphoreSignalWait,
    .groupEnterLeave,
    .hopBetweenSerialQueues,
    .asyncWorkItem,
    .createAndReleaseSerialQueue,
    .wakeSleepingWorker,
    .roundTripWithoutPause,
    .asyncAfterManyTimers,
    .sleepingTasksOnGlobalQueue,
    .bytesPerIdleSerialQueue,
    .bytesPerPendingTask,
  ]
}
