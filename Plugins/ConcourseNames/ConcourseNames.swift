import Foundation
import PackagePlugin

/// Adds one generated file to a target that uses Concourse together with Foundation. Names such as `DispatchQueue` then
/// mean Concourse's everywhere in the target.
///
/// Foundation re-exports the toolchain's Dispatch, so without the file these names are ambiguous where both are
/// imported.
@main
struct ConcourseNames: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    guard target is SwiftSourceModuleTarget else { return [] }
    let output = context.pluginWorkDirectoryURL.appending(path: "ConcourseNames.swift")
    return [
      .buildCommand(
        displayName: "Naming Concourse's types in \(target.name)",
        executable: try context.tool(named: "concourse-names").url, arguments: [output.path],
        outputFiles: [output])
    ]
  }
}
