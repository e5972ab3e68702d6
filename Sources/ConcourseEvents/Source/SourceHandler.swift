/// A block of a C program, which it calls and owns.
package protocol ClientBlock: AnyObject {
  /// The address of the block's code, which recordings show.
  var code: UInt { get }
  func call()
}

/// The handler of a source: a closure, a work item, a block or a C function, with its QoS and flags.
struct SourceHandler {
  private enum Body {
    case closure(() -> Void)
    case block(any ClientBlock)
    case item(DispatchWorkItem)
    /// Called with the object's current context or, if settled, with its event context. The extras, and so the
    /// context, outlive the source while the handler can be called.
    case function(ContextFunction, ObjectExtras, settled: Bool)
  }

  private let body: Body
  /// Separate from `body`, so that reading it does not retain what `body` holds.
  let service: Service

  /// The QoS and flags of a handler.
  struct Service {
    let qos: QoSLevel
    /// All defined flags fit into a byte; a source has three of these.
    private let bits: UInt8

    init(qos: QoSLevel, flags: DispatchWorkItemFlags) {
      self.qos = qos
      bits = UInt8(truncatingIfNeeded: flags.rawValue)
    }

    var flags: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: UInt(bits)) }

    var traits: WorkTraits { flags.contains(.barrier) ? .barrier : [] }
  }

  init(_ closure: @escaping () -> Void, qos: DispatchQoS, flags: DispatchWorkItemFlags) {
    body = .closure(closure)
    service = Service(qos: QoSLevel(qos.qosClass), flags: flags)
  }

  init(_ item: DispatchWorkItem) {
    body = .item(item)
    service = Service(qos: .unspecified, flags: item.flags)
  }

  init(_ block: any ClientBlock) {
    body = .block(block)
    service = Service(qos: .unspecified, flags: [])
  }

  init(_ function: @escaping ContextFunction, _ extras: ObjectExtras, settled: Bool) {
    body = .function(function, extras, settled: settled)
    service = Service(qos: .unspecified, flags: [])
  }

  func call() {
    switch body {
    case .closure(let closure):
      if Recording.isOn {
        ItemRecording.run(ItemRecording.code(of: closure), from: nil, closure)
      } else {
        closure()
      }
    case .block(let block):
      if Recording.isOn { ItemRecording.run(block.code, from: nil, block.call) } else { block.call() }
    case .item(let item):
      if Recording.isOn {
        ItemRecording.run(item.codeAddress, from: nil, item.execute)
      } else {
        item.execute()
      }
    case .function(let function, let extras, let settled):
      let context = settled ? extras.eventContext : extras.currentContext
      if Recording.isOn {
        ItemRecording.run(ItemRecording.code(of: function, context), from: nil) { function(context) }
      } else {
        function(context)
      }
    }
  }
}
