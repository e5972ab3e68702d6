import Concourse
import Testing

/// The C names in Apple's module.
@Suite("C's names")
struct CNamesTests {
  @Test("C's types are the classes and values of Swift")
  func types() {
    #expect(dispatch_object_t.self == DispatchObject.self)
    #expect(dispatch_queue_t.self == DispatchQueue.self)
    #expect(dispatch_queue_attr_t.self == DispatchQueue.Attributes.self)
    #expect(dispatch_source_t.self == DispatchSource.self)
    #expect(dispatch_io_t.self == DispatchIO.self)
    #expect(dispatch_data_t.self == DispatchData.self)
    #expect(dispatch_group_t.self == DispatchGroup.self)
    #expect(dispatch_semaphore_t.self == DispatchSemaphore.self)
    let attributes: dispatch_queue_attr_t = [.concurrent]
    let queue: dispatch_queue_t = DispatchQueue(label: "C's names", attributes: attributes)
    #expect(queue.label == "C's names")
  }

  @Test("a serial queue and a workloop are serial executors of one class")
  func serialExecutors() {
    let queues: [dispatch_queue_serial_executor_t] = [
      DispatchSerialQueue(label: "serial"), DispatchWorkloop(label: "workloop"),
    ]
    for queue in queues {
      let executor: any SerialExecutor = queue
      #expect(executor === queue)
      queue.asyncAndWait { queue.checkIsolated() }
    }
  }

  @Test("a source's handler is a type of the source's protocol, of its class and of the module")
  func handlers() {
    let source = DispatchSource.makeUserDataAddSource()
    let handled = DispatchSemaphore(value: 0)
    let handler: DispatchSource.DispatchSourceHandler = { handled.signal() }
    set(handler, on: source)
    source.activate()
    source.add(data: 1)
    handled.wait()
    let plain: DispatchSourceHandler = handler
    source.setEventHandler(handler: plain)
    source.cancel()
  }

  private func set<Source: DispatchSourceProtocol>(
    _ handler: @escaping Source.DispatchSourceHandler, on source: Source
  ) {
    source.setEventHandler(handler: handler)
  }

  @Test("a QoS class from its number in C")
  func classes() {
    let number: qos_class_t = QOS_CLASS_UTILITY
    #expect(DispatchQoS.QoSClass(rawValue: number) == .utility)
    #expect(DispatchQoS.QoSClass.userInitiated.rawValue == QOS_CLASS_USER_INITIATED)
    #expect(QOS_CLASS_BACKGROUND.rawValue == 0x09 && qos_class_t(0x09) == QOS_CLASS_BACKGROUND)
    #expect(QOS_CLASS_USER_INTERACTIVE != QOS_CLASS_DEFAULT && QOS_CLASS_UNSPECIFIED.rawValue == 0)
    switch number {
    case QOS_CLASS_UTILITY: break
    default: Issue.record("not the class")
    }
  }
}
