import ConcourseCluster
import Glibc
import Testing

/// Connections by TLS, with certificates that are made here.
@Suite(.timeLimit(.minutes(10))) struct EncryptionTests {
  /// A folder with certificates that sign themselves, each with its key. It goes with this object.
  private final class Certificates {
    private let folder: String

    init() throws {
      var template = Array(
        "\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/certificates-XXXXXX".utf8CString)
      guard mkdtemp(&template) != nil else { throw Failed("no temporary folder: \(errno)") }
      folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      for name in ["ours", "other"] {
        let maker = try spawn([
          "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
          "-days",
          "2", "-subj", "/CN=\(name)", "-addext", "subjectAltName=DNS:\(name),IP:127.0.0.1", "-keyout",
          key(name),
          "-out", certificate(name),
        ])
        var status: Int32 = 0
        waitpid(maker, &status, 0)
        if status != 0 { throw Failed("openssl makes no certificate: \(status)") }
      }
    }

    deinit { if let remover = try? spawn(["rm", "-rf", folder]) { waitpid(remover, nil, 0) } }

    func certificate(_ name: String) -> String { "\(folder)/\(name).pem" }
    func key(_ name: String) -> String { "\(folder)/\(name).key" }
  }

  @Test func onlyEncryptedConnectionsOfKnownCertificates() async throws {
    let certificates = try Certificates()
    defer { withExtendedLifetime(certificates) {} }
    let (ours, key) = (certificates.certificate("ours"), certificates.key("ours"))
    let servers = try await TestServers.start(
      1,
      authorization:
        "tls { cert_file: \"\(ours)\", key_file: \"\(key)\", ca_file: \"\(ours)\", verify: true }")
    defer { servers.stop() }
    let right = ClusterTLS(authorities: ours, certificate: ours, key: key, serverName: "ours")
    let cluster = try await Cluster.connect(servers: servers.addresses, tls: right, replicas: 1)
    let queue = ClusterQueue<Int>(label: "encrypted", on: cluster)
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    try await queue.async(1)
    #expect(await log.until(1) == [1])
    await cluster.shutdown()

    func refuses(_ tls: ClusterTLS?) async {
      await #expect(throws: ClusterError.self) {
        try await Cluster.connect(servers: servers.addresses, tls: tls, replicas: 1)
      }
    }
    await refuses(nil)
    var tls = right
    tls.serverName = "other"
    await refuses(tls)
    tls = right
    tls.authorities = certificates.certificate("other")
    await refuses(tls)
    tls = right
    tls.certificate = certificates.certificate("other")
    tls.key = certificates.key("other")
    await refuses(tls)
    tls = right
    (tls.certificate, tls.key) = (nil, nil)
    await refuses(tls)
    tls = right
    tls.authorities = certificates.certificate("none")
    await refuses(tls)
    // The server is still there for the right one.
    let last = try await Cluster.connect(servers: servers.addresses, tls: right, replicas: 1)
    await last.shutdown()
  }
}
