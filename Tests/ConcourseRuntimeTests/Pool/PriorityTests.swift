import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Nice values and slices of the bands.
  @Suite("Priority")
  struct PriorityTests {
    private let all: [QoSLevel] = [.userInteractive, .userInitiated, .default, .utility, .background]

    private func values(_ asked: [Int32], base: Int32 = 0, lowest: Int32) -> [Int32] {
      let priority = Priority(asked: differences(asked), base: base) { $0 >= lowest }
      return all.map { priority.nice(at: $0) }
    }

    private func differences(_ values: [Int32]) -> Priority.Differences {
      .init(userInteractive: values[0], userInitiated: values[1], utility: values[2], background: values[3])
    }

    @Test("S50 a process that may raise its threads uses it, and another does not")
    func raising() {
      #expect(values([-4, -2, 2, 10], lowest: -20) == [-4, -2, 0, 2, 10])
      #expect(values([-4, -2, 2, 10], lowest: -3) == [0, -2, 0, 2, 10])
      #expect(values([-4, -2, 2, 10], lowest: 0) == [0, 0, 0, 2, 10])
    }

    @Test("values are added to the process's own, up to 19")
    func base() {
      #expect(values([-4, -2, 2, 10], base: 12, lowest: 12) == [12, 12, 12, 14, 19])
      #expect(values([-4, -2, 2, 10], base: 12, lowest: -20) == [8, 10, 12, 14, 19])
    }

    @Test(
      "CONCOURSE_NICE has four values in rising order around 0",
      arguments: [
        ("-4,-2,2,10", [-4, -2, 2, 10]), ("0,0,0,0", [0, 0, 0, 0]), ("-20,0,0,19", [-20, 0, 0, 19]),
        ("", nil), ("5", nil), ("0,0,0", nil), ("0,0,0,0,0", nil), ("0,0,0,20", nil), ("-21,0,0,0", nil),
        ("-1,-2,0,0", nil), ("0,0,5,4", nil), ("0,1,2,3", nil), ("-3,-2,-1,0", nil), ("a,0,0,0", nil),
        ("0, 0,0,0", nil),
      ] as [(String, [Int32]?)])
    func setting(text: String, values: [Int32]?) {
      #expect(Priority.parse(text) == values.map(differences))
    }

    @Test("CONCOURSE_NICE is read once, before the first thread")
    func environment() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_NICE", "0,0,3,7", 1)
        let found = Shared<[Int32]>([])
        let done = DispatchSemaphore(value: 0)
        for qosClass in [DispatchQoS.QoSClass.userInteractive, .utility, .background] {
          DispatchQueue.global(qos: qosClass).async {
            let nice = threadNice()
            found.change { $0.append(nice) }
            done.signal()
          }
          #expect(comes(done))
        }
        let base = threadNice()
        #expect(found.value == [base, base + 3, base + 7])
      }
    }

    @Test("a bad CONCOURSE_NICE is named in one line and ignored")
    func badSetting() async {
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        setenv("CONCOURSE_NICE", "5", 1)
        let done = DispatchSemaphore(value: 0)
        let base = threadNice()
        DispatchQueue.global(qos: .background).async {
          if threadNice() == min(base + 10, 19) { done.signal() }
        }
        #expect(comes(done))
      }
      let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
      #expect(
        text.contains(
          "CONCOURSE_NICE=5 is not four nice values in rising order, from -20 to 19, two of them up to 0 and two "
            + "from 0; ignored"))
    }
  }
}
