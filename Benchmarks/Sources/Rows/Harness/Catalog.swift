extension Row {
  /// Every row, in the order in which the report shows them.
  static let all: [Row] = queues + timers + events

  private static let queues: [Row] = [
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

  private static let timers: [Row] = [
    .cancelledTimerSources,
    .cancelledAsyncAfter,
    .timerLateness(milliseconds: 1, samples: 1_000),
    .timerLateness(milliseconds: 5, samples: 400),
    .timerLateness(milliseconds: 50, samples: 100),
  ]

  private static let events: [Row] = [
    .pipeEventRoundTrip,
    .echo(connections: 1, trips: 20_000),
    .echo(connections: 64, trips: 200_000),
    .echo(connections: 1_000, trips: 200_000),
    .readCachedFile,
    .idleContextSwitches,
  ]
}
