"""Copies the package of the model with the engine's files instrumented: each place where a decision can be changed
becomes a call that can make the change while the model runs. `Scripts/mutate` builds the copy once for all mutants.

An operator such as `<` becomes one of its own, `<∀∁`, of the same precedence, which does what `<` does unless its
mutant is chosen. So expressions need not be parsed. Lines stay where they are.
"""

import collections
import pathlib
import re

MODEL = pathlib.Path(__file__).resolve().parent
# Where states change: the packed words, the state machines under locks, and the structures that they decide about. Of a
# file with names behind it, these functions.
TRANSITIONS = """
Coordination/DispatchOnce.swift Coordination/DispatchSemaphore.swift Coordination/GroupState.swift
Coordination/ParallelLoop.swift EventLoop/WatchTable.swift:end,take
EventLoop/TimerTable.swift:insert,dequeue,take,mark,restore,publish EventLoop/TimerTables+Report.swift
EventLoop/TimerTables.swift:hasPassed,submit,set,lockTable,cancel,insert,makeUpForRefusal,armAgain,nextLook
EventLoop/EventLoop.swift:takeSeat,leaveSeat,pollAsWorker,poll,passOnInterruption,awaitSeat
IO/DescriptorSchedule.swift Node/WorkList.swift Park/Lock.swift Park/ThreadEvent.swift Pool/BandCounters.swift
Pool/Band+Worker.swift:rejoin,park,resume,waitToBeWoken,waitForEvents,leaveIdle
Pool/Monitor+Replacement.swift:giveUp Queue/DispatchQueue+Drain.swift:giveUpPlace Queue/DispatchQueue+Enqueue.swift:keep
Queue/Hierarchy/DispatchQueue+Suspension.swift:keep,makeTickets,exchange
Queue/Hierarchy/DispatchQueue+Target.swift:changeTarget,isOnFormerTarget Queue/QueueState.swift
Queue/QueueState+Readers.swift Queue/QueueState+Snapshot.swift
Source/SourceCore.swift:callEventHandler Source/SourceState.swift Submit/WorkItemState.swift
""".split()

# The engine's own tests of single transitions, which need no exploration.
UNIT_TESTS = """
Coordination/GroupStateTests.swift IO/DescriptorScheduleTests.swift Pool/BandCountersTests.swift
Queue/QueueStateTests.swift Source/SourceStateTests.swift Stress/Seed.swift
""".split()

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "&+": "&-", "&-": "&+"}
ASSIGNMENTS = {"+=": "-=", "-=": "+="}
CASE = r"\s*(?:case .*|default): (?=\S)"
# One step of a transition of QueueState.
STEP = r"\.(setting|clearing|clearingWork|noting|raised|owned|unowned)\(([^()]*)\)"
ATOM = r"[a-z_]\w*(?:\.\w+|\((?:[^()\"]|\([^()\"]*\))*\))*"

SUPPORT = """\
extension QueueState.Snapshot {
  func unless(_ number: Int, _ step: (Self) -> Self) -> Self { isMutant(number) ? self : step(self) }
}
"""

Change = collections.namedtuple("Change", "path line what")


class Instrumentation:
    """All changes of all files. The number of a change is its index."""

    def __init__(self):
        self.changes = []
        self.definitions = []
        self.files = {}
        for entry in TRANSITIONS:
            path, _, functions = entry.partition(":")
            text = (MODEL / "ConcourseModel" / path).read_text()
            self.files[path] = self.rewrite(path, text, functions.split(",") if functions else None)

    def add(self, path, line, what):
        same = sum(change == (path, line, what) or change.what.startswith(what + " #")
                   for change in self.changes if change[:2] == (path, line))
        self.changes.append(Change(path, line, what if same == 0 else f"{what} #{same + 1}"))
        return len(self.changes) - 1

    def name(self, symbol):
        """An operator of its own: two mathematical signs say its number."""
        number = len(self.changes)
        return symbol + chr(0x2200 + number // 200) + chr(0x2200 + number % 200)

    def define(self, kind, name, precedence, generic, signature, changed, plain, number):
        operator = f"{kind} operator {name}" + (f": {precedence}" if precedence else "")
        prefix = "" if kind == "infix" else kind + " "
        self.definitions.append(
            f"{operator}\n@inline(__always) public {prefix}func {name} {generic}{signature} {{\n"
            f"  isMutant({number}) ? {changed} : {plain}\n}}")

    # MARK: - The changes of one expression

    def comparison(self, path, line, symbol, operand):
        name, other = self.name(symbol), COMPARISONS[symbol]
        number = self.add(path, line, f"{symbol} to {other}")
        if operand == "nil":
            generic, signature = "<T>", "(a: T?, b: _OptionalNilComparisonType) -> Bool"
        else:
            generic = "<T: Equatable>" if symbol in ("==", "!=") else "<T: Comparable>"
            signature = "(a: T, b: T) -> Bool"
        self.define(
            "infix", name, "ComparisonPrecedence", generic, signature, f"a {other} b", f"a {symbol} b", number)
        return name

    def arithmetic(self, path, line, symbol):
        name, other = self.name(symbol), ARITHMETIC[symbol]
        number = self.add(path, line, f"{symbol} to {other}")
        self.define(
            "infix", name, "AdditionPrecedence", "<T: FixedWidthInteger>", "(a: T, b: T) -> T",
            f"a &{other.lstrip('&')} b", f"a {symbol} b", number)
        return name

    def assignment(self, path, line, symbol):
        name, other = self.name(symbol), ASSIGNMENTS[symbol]
        number = self.add(path, line, f"{symbol} to {other}")
        self.define(
            "infix", name, "AssignmentPrecedence", "<T: FixedWidthInteger>", "(a: inout T, b: T)",
            f"(a = a &{other[0]} b)", f"(a {symbol} b)", number)
        return name

    def logical(self, path, line, symbol):
        """Two mutants: only the left or only the right side counts."""
        name = self.name(symbol)
        left = self.add(path, line, f"left of {symbol} only")
        right = self.add(path, line, f"right of {symbol} only")
        precedence = "LogicalConjunctionPrecedence" if symbol == "&&" else "LogicalDisjunctionPrecedence"
        self.define(
            "infix", name, precedence, "", "(a: Bool, b: @autoclosure () throws -> Bool) rethrows -> Bool",
            "a", f"isMutant({right}) ? try b() : try a {symbol} b()", left)
        return name

    def negation(self, path, line):
        """For `!`, which is left out."""
        name = self.name("!")
        number = self.add(path, line, "without !")
        self.define("prefix", name, "", "", "(a: Bool) -> Bool", "a", "!a", number)
        return name

    def condition(self, path, line, text):
        """Put before a condition that is one name or call."""
        name = self.name("¬")
        number = self.add(path, line, f"not {text}")
        self.define("prefix", name, "", "", "(a: Bool) -> Bool", "!a", "a", number)
        return name

    def literal(self, path, line, text):
        """Put after a number: one more."""
        name = self.name("±")
        number = self.add(path, line, f"{text} + 1")
        self.define("postfix", name, "", "<T: FixedWidthInteger>", "(a: T) -> T", "a + 1", "a", number)
        return name

    # MARK: - The lines of one file

    def rewrite(self, path, text, functions=None):
        lines = text.split("\n")
        codes = [self.masked(line) for line in lines]
        function = ""
        for index, code in enumerate(codes):
            # Where a function, an initialiser or a property begins.
            if match := re.search(r"\b(func|init|var)\b.*", code):
                if code.rstrip().endswith(("{", "(")) or match[1] != "var": function = code
            name = re.search(r"\b(?:func|var) (\w+)", function)
            if self.is_left_alone(code, lines[index]) or functions and not (name and name[1] in functions):
                continue
            line = lines[index]
            new = self.unguarded(path, index + 1, self.expressions(path, index + 1, line, code), code)
            if self.is_statement(codes, index, function):
                number = self.add(path, index + 1, "dropped")
                indent = re.match(CASE + r"|\s*", line).end()
                new = f"{new[:indent]}if !isMutant({number}) {{ {new[indent:]} }}"
            lines[index] = new
        return "\n".join(lines)

    def unguarded(self, path, line, text, code):
        """With a condition that lets everything pass, unless it binds a name or has several parts."""
        match = re.match(r"\s*guard (?!let\b|case\b)([^,{]*|[^{]*\([^{]*) else \{ return", code)
        if not match or "," in re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", match[1])):
            return text
        number = self.add(path, line, "without the guard")
        return re.sub(r"guard (.*?) else \{ return", rf"guard isMutant({number}) || (\1) else {{ return", text, count=1)

    @staticmethod
    def masked(line):
        """The line with its strings and comments blank, so that places stay the same."""
        blank = lambda match: " " * len(match[0])
        return re.sub(r"//.*", blank, re.sub(r'"(?:\\.|[^"\\])*"', lambda match: '"' * len(match[0]), line))

    @staticmethod
    def is_left_alone(code, line):
        stripped = code.strip()
        return not stripped or '"' in code or re.match(
            r"#|import|internal import|@|case [^:]*$|static (let|var)|.*static let|(final )?class |struct |enum |extension "
            r"|protocol |\+ ", stripped) or re.search(
            r"Trap\.|Recording\.|PlainMemory|precondition|assert|assumingMemoryBound|MemoryLayout|\bTrap\b", line)

    def expressions(self, path, line, text, code):
        edits = []
        for match in re.finditer(r"(?<= )(<=|>=|==|!=|<|>|&&|\|\||&\+|&-|\+=|-=|\+|-)(?= (\S+))", code):
            symbol = match[1]
            if symbol in COMPARISONS:
                new = self.comparison(path, line, symbol, re.match(r"nil\b|", match[2])[0])
            elif symbol in ("&&", "||"):
                new = self.logical(path, line, symbol)
            elif symbol in ARITHMETIC:
                new = self.arithmetic(path, line, symbol)
            elif "(" not in match[2]:
                new = self.assignment(path, line, symbol)
            else:
                continue
            edits.append((match.start(), match.end(), new))
            number = re.match(r"\d+(?=$|[ ),])", code[match.end() + 1:])
            isMask = re.search(r"& [\w.]+ $", code[:match.start()])
            if number and not isMask and (symbol in COMPARISONS or symbol in ASSIGNMENTS):
                place = match.end() + 1 + number.end()
                edits.append((place, place, self.literal(path, line, f"{symbol} {number[0]}")))
        for match in re.finditer(r"(?<=[ (])!(?=[a-zA-Z_(])", code):
            edits.append((match.start(), match.end(), self.negation(path, line)))
        for start, end in self.conditions(code):
            edits.append((start, start, self.condition(path, line, text[start:end])))
        if path.startswith("Queue/QueueState"):
            for match in re.finditer(STEP, code):
                number = self.add(path, line, f"without {match[0]}")
                edits += [(match.start(), match.start(), f".unless({number}, {{ $0"), (match.end(), match.end(), " })")]
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    @staticmethod
    def conditions(code):
        """The places of conditions that are one name or call."""
        if match := re.match(r"(\s*(?:\} else )?(?:if|guard|while) )(.*?)(?: else\b.*| \{.*|,)?$", code):
            start, depth = match.end(1), 0
            for place in range(start, match.end(2) + 1):
                character = code[place] if place < match.end(2) else ","
                depth += (character in "([{") - (character in ")]}")
                if character == "," and depth == 0:
                    part = code[start:place]
                    if re.fullmatch(ATOM, part.strip()) and not re.match(r"(let|var|case|true)\b", part.strip()):
                        yield start + len(part) - len(part.lstrip()), place
                    start = place + 1
        for match in re.finditer(rf"(?:return |(?<![=<>!])= |\(|: |^\s*)({ATOM}) \? ", code):
            if not re.match(r"(if|return|try|guard)\b", match[1]):
                yield match.start(1), match.end(1)

    @staticmethod
    def is_statement(codes, index, function):
        """Whether the line is a whole call or assignment that can be left out."""
        code = re.sub(CASE, "", codes[index]).strip()
        if re.match(r"(let|var|if|guard|return|while|for|switch|case|else|defer|break|continue|throw|try|do|func|init"
                    r"|super|self\.init|static|private|final|mutating|fileprivate|get|set|where|yield|_modify)\b", code):
            return False
        if any(code.count(left) != code.count(right) for left, right in ("()", "[]", "{}")):
            return False
        call = re.fullmatch(ATOM, code) and code.endswith(")")
        assignment = re.fullmatch(rf"(?:{ATOM}|\([\w., ]+\)|_) (?:=|\+=|-=|&\+=|&-=|\|=) .*[\w)\]]", code)
        if not call and not assignment:
            return False
        # An initialiser must give each property its value.
        if assignment and re.search(r"\binit\b", function):
            return False
        before = next((line.strip() for line in reversed(codes[:index]) if line.strip()), "")
        after = next((line.strip() for line in codes[index + 1:] if line.strip()), "")
        if re.search(r"[(\[,=?+\-*/&|<>]$|\belse$", before):
            return False
        if before.endswith(":") and not before.startswith(("case", "default")):
            return False
        if re.match(r"[.?:+\-*/&|=<>]", after):
            return False
        # The value of a function or closure.
        if after.startswith("}") and before.endswith(("{", " in")) and not assignment:
            return bool(re.match(r"(\} else )?(if|guard|for|while|\} else|defer)\b", before)) or (
                "func" in before and "->" not in before)
        return True

    # MARK: - The package

    def written(self):
        """The files of the package that are no links."""
        sources = [f"ConcourseModel/{path}" for path in [*self.files, "Scheduler/Mutants.swift"]]
        return {pathlib.Path(path) for path in sources + [f"ConcourseModelTests/{path}" for path in UNIT_TESTS]}

    def write(self, package):
        """Writes the package; files that stay the same are not touched."""
        for file in package.rglob("*.swift"):
            # What has been removed or renamed.
            if not file.exists() or not file.is_symlink() and file.relative_to(package) not in self.written():
                file.unlink()
        for name in ["Package.swift", "CConcourse", "CModelContext", "LedgerTests"]:
            link(package / name, MODEL / name)
        for file in (MODEL / "ConcourseModelTests").iterdir():
            link(package / "ConcourseModelTests" / file.name, file)
        for path in UNIT_TESTS:
            text = (MODEL.parent / "ConcourseRuntimeTests" / path).read_text()
            text = text.replace("@testable import ConcourseEvents\n", "").replace("ConcourseRuntime", "ConcourseModel")
            write(package / "ConcourseModelTests" / path, text)
        sources = package / "ConcourseModel"
        for folder in (MODEL / "ConcourseModel").iterdir():
            for file in folder.rglob("*.*"):
                path = file.relative_to(MODEL / "ConcourseModel")
                if path.as_posix() not in self.files:
                    link(sources / path, file)
        write(sources / "Scheduler/Mutants.swift", SUPPORT + "\n".join(self.definitions) + "\n")
        for path, text in self.files.items():
            write(sources / path, text)


def link(place, target):
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() and place.readlink() == target:
        return
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def write(place, text):
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink():
        place.unlink()
    if not place.exists() or place.read_text() != text:
        place.write_text(text)


# What becomes of a line; `~` stands for the signs of a number. Tested by `Scripts/mutate --check`.
EXAMPLES = """
if seen < most { return }                 => if seen <~ most { return }
guard count >= 0 else { return }          => guard isMutant(#) || (count >=~ 0±~) else { return }
guard let first, isHeld else { return }   => guard let first, ¬~isHeld else { return }
while bits & Self.pending != 0 {          => while bits & Self.pending !=~ 0 {
if node == nil || !isEmpty {              => if node ==~ nil ||~ !~isEmpty {
if isHeld, let first {                    => if ¬~isHeld, let first {
return narrow ? 1 : 2                     => return ¬~narrow ? 1 : 2
waits += 1                                => if !isMutant(#) { waits +=~ 1±~ }
case .random: randoms -= 1                => case .random: if !isMutant(#) { randoms -=~ 1±~ }
leaveSeat()                               => if !isMutant(#) { leaveSeat() }
let word = Atomic<UInt64>(0)              => let word = Atomic<UInt64>(0)
Trap.clientBug(1, "a < b") // c == d      => Trap.clientBug(1, "a < b") // c == d
func push(_ node: Node) -> Bool {         => func push(_ node: Node) -> Bool {
while true {                              => while true {
"""


def examples():
    """Yields each example as (line, expected, actual)."""
    instrumentation = Instrumentation()
    for example in EXAMPLES.strip().splitlines():
        line, expected = re.split(r" +=> ", example)
        actual = instrumentation.rewrite("Example.swift", line)
        actual = re.sub(r"isMutant\(\d+\)", "isMutant(#)", re.sub("[\u2200-\u22ff]+", "~", actual))
        yield line, expected, actual
