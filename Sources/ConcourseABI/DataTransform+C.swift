// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import CConcourseABI
internal import ConcourseEvents

// Conversions between data formats. No public header declares them.

/// The format at an address.
private func format(_ reference: Reference?, _ argument: StaticString) -> DataFormat {
  switch reference {
  case nil: Reject.null("dispatch_data_create_with_transform", argument)
  case concourse_dispatch_data_format_type_none(): return .none
  case concourse_dispatch_data_format_type_base32(): return .base32
  case concourse_dispatch_data_format_type_base32hex(): return .base32hex
  case concourse_dispatch_data_format_type_base64(): return .base64
  case concourse_dispatch_data_format_type_utf8(): return .utf8
  case concourse_dispatch_data_format_type_utf16le(): return .utf16le
  case concourse_dispatch_data_format_type_utf16be(): return .utf16be
  case concourse_dispatch_data_format_type_utf_any(): return .utfAny
  default:
    ClientBug.trap(
      722,
      "dispatch_data_create_with_transform: the \(argument) is not one of the DISPATCH_DATA_FORMAT_TYPE_ constants"
    )
  }
}

@c(dispatch_data_create_with_transform)
package func dispatch_data_create_with_transform(
  _ data: UnsafeMutableRawPointer?, _ source: UnsafeMutableRawPointer?, _ target: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  let source = format(source, "input type")
  let target = format(target, "output type")
  let data = Object.data(data, "dispatch_data_create_with_transform").takeUnretainedValue()
  return DataObject.transform(data, from: source, to: target)?.newReference
}
