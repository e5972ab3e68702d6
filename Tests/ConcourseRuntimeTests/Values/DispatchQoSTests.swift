import Testing

@testable import ConcourseRuntime

@Suite("DispatchQoS")
struct DispatchQoSTests {
  @Test("raw values are those of qos_class_t")
  func rawValues() {
    let expected: [(DispatchQoS.QoSClass, qos_class_t, UInt32)] = [
      (.userInteractive, QOS_CLASS_USER_INTERACTIVE, 0x21),
      (.userInitiated, QOS_CLASS_USER_INITIATED, 0x19),
      (.default, QOS_CLASS_DEFAULT, 0x15),
      (.utility, QOS_CLASS_UTILITY, 0x11),
      (.background, QOS_CLASS_BACKGROUND, 0x09),
      (.unspecified, QOS_CLASS_UNSPECIFIED, 0),
    ]
    for (qosClass, rawValue, number) in expected {
      #expect(qosClass.rawValue == rawValue)
      #expect(rawValue.rawValue == number)
      #expect(DispatchQoS.QoSClass(rawValue: qos_class_t(number)) == qosClass)
    }
  }

  @Test("other raw values name no class")
  func unknownRawValues() {
    for rawValue: UInt32 in [1, 0x05, 0x0A, 0x20, 0x22, .max] {
      #expect(DispatchQoS.QoSClass(rawValue: qos_class_t(rawValue: rawValue)) == nil)
    }
  }

  @Test("the named values are their classes with no relative priority")
  func namedValues() {
    let expected: [(DispatchQoS, DispatchQoS.QoSClass)] = [
      (.userInteractive, .userInteractive), (.userInitiated, .userInitiated), (.default, .default),
      (.utility, .utility), (.background, .background), (.unspecified, .unspecified),
    ]
    for (qos, qosClass) in expected {
      #expect(qos == DispatchQoS(qosClass: qosClass, relativePriority: 0))
    }
  }

  @Test("equality covers class and relative priority")
  func equality() {
    #expect(DispatchQoS.utility != .background)
    #expect(DispatchQoS(qosClass: .utility, relativePriority: -1) != .utility)
    #expect(
      DispatchQoS(qosClass: .utility, relativePriority: -15)
        == DispatchQoS(qosClass: .utility, relativePriority: -15))
    #expect(DispatchQoS(qosClass: .utility, relativePriority: -15).relativePriority == -15)
  }

  @Test("S47 a relative priority above 0 traps with a line that says so")
  func relativePriorityTooHigh() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = DispatchQoS(qosClass: .utility, relativePriority: 1)
    }
    let spoken = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(spoken.contains("relativePriority: 1"))
    #expect(spoken.contains("between -15 and 0"))
  }

  @Test("S47 a relative priority below -15 traps with a line that says so")
  func relativePriorityTooLow() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = DispatchQoS(qosClass: .utility, relativePriority: -16)
    }
    let spoken = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(spoken.contains("relativePriority: -16"))
    #expect(spoken.contains("between -15 and 0"))
  }
}
