// Data in another form: the bytes behind a printable encoding, or text in another encoding.

extension DataObject {
  /// The same content in another format.
  ///
  /// Bytes can be turned into base 32 or base 64 and back, and text from each UTF into each; nothing leads
  /// from bytes to text. Works region by region, without making the data contiguous. O(count).
  ///
  /// - Encodings of bytes are written padded and without white space. Read is what has full groups, the last
  ///   of them padded if it must be; spaces, tabs and ends of lines between characters do not count, and
  ///   lower case is no upper case. Bits of the last group that stand for no byte are not looked at.
  /// - Text in UTF-16 is written with a byte order mark, text in UTF-8 without; empty text is empty data in
  ///   both. One mark at the start of what is read is no part of the text; further ones are characters.
  /// - `none` from `none`, and well-formed UTF-8 without a mark from itself, are the very same object.
  ///
  /// Matching C function: `dispatch_data_create_with_transform`.
  /// - Parameters:
  ///   - data: what is to be transformed.
  ///   - source: its format.
  ///   - target: the format of the result. Not `utfAny`.
  /// - Returns: nil when the data is malformed, when nothing leads from one format to the other, and when
  ///   the system has no memory.
  package static func transform(
    _ data: DataObject, from source: DataFormat, to target: DataFormat
  ) -> DataObject? {
    switch (source.kind, target.kind) {
    case (.bytes(let source), .bytes(let target)):
      guard let bytes = source.map({ $0.decode(data) }) ?? data else { return nil }
      return target.map { $0.encode(bytes) } ?? bytes
    case (.text(let source), .text(let target?)):
      return TextCode.convert(data, from: source ?? .marked(in: data), to: target)
    case (.text, .text(nil)), (.bytes, .text), (.text, .bytes):
      return nil
    }
  }
}

extension DispatchData {
  /// As `DataObject.transform`.
  package func transformed(from source: DataFormat, to target: DataFormat) -> DispatchData? {
    DataObject.transform(object, from: source, to: target).map { DispatchData(object: $0) }
  }
}
