import CConcourse
import Glibc

@testable import ConcourseRuntime

/// A recording as the tests read it: this process's, or a file.
struct RecordedMemory {
  struct Event: Equatable {
    var event: Recording.Event
    var node: UInt
    var object: UInt
    var function: UInt
    var ticks: UInt64
    var ring: Int
  }

  let header: concourse_recording_header
  private(set) var events: [Event] = []
  private(set) var names: [UInt: String] = [:]
  private(set) var rings: [concourse_event_ring] = []

  /// Of this process; nil before the first event. Through the kernel, since other threads may go on writing.
  static func ofProcess() -> RecordedMemory? {
    guard let address = concourse_recording_memory() else { return nil }
    return RecordedMemory(path: "/proc/self/mem", from: UInt(bitPattern: address))
  }

  init?(path: String, from start: UInt = 0) {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return nil }
    defer { close(file) }
    func read<Value>(_ offset: UInt64, as type: Value.Type, count: Int) -> [Value]? {
      let size = count * MemoryLayout<Value>.stride
      var isRead = false
      let values = [Value](unsafeUninitializedCapacity: count) { buffer, filled in
        isRead = pread(file, buffer.baseAddress, size, off_t(start + UInt(offset))) == size
        filled = isRead ? count : 0
      }
      return isRead ? values : nil
    }
    guard let header = read(0, as: concourse_recording_header.self, count: 1)?.first,
      withUnsafeBytes(of: header.magic, { $0.elementsEqual(Array("CONCREC\0".utf8)) }),
      let rings = read(header.rings, as: concourse_event_ring.self, count: Int(header.ring_count)),
      let names = read(header.names, as: concourse_queue_name.self, count: Int(header.name_count))
    else { return nil }
    self.header = header
    self.rings = rings
    for (index, ring) in rings.enumerated() {
      let capacity = UInt64(header.ring_capacity)
      let start =
        header.records + UInt64(index) * capacity * UInt64(MemoryLayout<concourse_event_record>.stride)
      if ring.head == 0 { continue }
      guard let records = read(start, as: concourse_event_record.self, count: Int(capacity)) else {
        return nil
      }
      for place in (ring.head > capacity ? ring.head - capacity : 0)..<ring.head {
        let record = records[Int(place % capacity)]
        guard let event = Recording.Event(rawValue: UInt8(record.event_and_node >> 56)) else { return nil }
        events.append(
          Event(
            event: event, node: UInt(record.event_and_node & (1 << 56 - 1)), object: UInt(record.object),
            function: UInt(record.function), ticks: record.ticks, ring: index))
      }
    }
    for name in names where name.complete == 1 {
      self.names[UInt(name.queue)] = withUnsafeBytes(of: name.text) {
        String(decoding: $0.prefix(Int(name.length)), as: UTF8.self)
      }
    }
  }

  /// The events of the queue with that label, in the order of time.
  func events(of label: String) -> [Event] {
    let queues = names.filter { $0.value == label }.map(\.key)
    return events.filter { queues.contains($0.object) && [.submitted, .started, .ended].contains($0.event) }
      .sorted { $0.ticks < $1.ticks }
  }
}
