/**
 * Looks into a shared library (the ELF format, 64 bits, little endian): is it whole, made for this machine, where
 * does it look for others, and which symbols does it name?
 * @module
 */

/** Bytes of the file's header. */
const HEADER = 64;

/** Numbers that the header gives to processors. */
const MACHINES: Readonly<Record<string, number>> = { x86_64: 62, aarch64: 183 };

/** File type of a shared library. */
const ET_DYN = 3;

// Segments: bytes that are loaded, and the table for the loader.
const PT_LOAD = 1;
const PT_DYNAMIC = 2;

// Entries of the loader's table: end, address and length of the strings, and the two kinds of search path.
const DT_NULL = 0;
const DT_STRTAB = 5;
const DT_STRSZ = 10;
const DT_RPATH = 15;
const DT_RUNPATH = 29;

/** Longest search path that is read, in bytes; libtensorflow's own has 20,000. */
const MAX_STRING = 1 << 17;

/** A library's headers. */
export interface LibraryHeaders {
  /** Bytes that the file must have to be whole. */
  readonly length: number;
  readonly machine: number;
  readonly segments: readonly Segment[];
}

interface Segment {
  readonly type: number;
  /** Where it lies in the file, in bytes. */
  readonly offset: number;
  readonly address: number;
  /** Bytes in the file. */
  readonly size: number;
}

/**
 * Says why the file at `path` cannot be loaded, as the end of a sentence that begins with its name.
 *
 * @param arch processor that it must be made for. Default: this machine's
 * @returns undefined if it is a whole shared library for this machine
 */
export function libraryFault(path: string, arch: string = Deno.build.arch): string | undefined {
  let size: number;
  try {
    const info = Deno.statSync(path);
    if (!info.isFile) return "is not a file";
    size = info.size;
  } catch (error) {
    return error instanceof Deno.errors.NotFound
      ? "is missing"
      : `cannot be read: ${(error as Error).message}`;
  }
  if (size < HEADER) return `is too small for a library: ${size} bytes`;
  try {
    using file = Deno.openSync(path);
    const headers = readHeaders(file);
    if (headers === undefined) return "is not a 64-bit ELF shared library";
    if (headers.machine !== MACHINES[arch]) {
      const made = Object.keys(MACHINES).find((name) => MACHINES[name] === headers.machine);
      return `is made for ${made ?? `processor ${headers.machine}`}, this machine is ${arch}`;
    }
    if (size < headers.length) return `is truncated: ${size} of ${headers.length} bytes`;
  } catch (error) {
    if (error instanceof RangeError) return `is truncated: ${size} bytes hold not even its headers`;
    return `cannot be read: ${(error as Error).message}`;
  }
}

/**
 * The folders in which a library looks for those it needs (`RUNPATH` or `RPATH`), separated by colons.
 *
 * @returns an empty string if it names none, or cannot be read
 */
export function searchPathOf(path: string): string {
  try {
    using file = Deno.openSync(path);
    const strings = loaderStrings(file);
    const at = strings && (strings.entries.get(DT_RUNPATH) ?? strings.entries.get(DT_RPATH));
    if (at === undefined) return "";
    const text = readAt(file, strings!.offset + at, Math.min(MAX_STRING, strings!.size - at));
    const bytes = new Uint8Array(text.buffer);
    const end = bytes.indexOf(0);
    return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
  } catch {
    return "";
  }
}

/**
 * The first symbol that a library names and that matches: for one whose full name holds a version.
 *
 * @returns undefined if there is none, or the library cannot be read
 */
export function symbolOf(path: string, pattern: RegExp): string | undefined {
  try {
    using file = Deno.openSync(path);
    const strings = loaderStrings(file);
    if (strings === undefined) return undefined;
    const text = new TextDecoder("latin1").decode(readAt(file, strings.offset, strings.size));
    const whole = new RegExp(`(?<=\\0)(?:${pattern.source})(?=\\0)`, pattern.flags);
    return whole.exec(text)?.[0];
  } catch {
    return undefined;
  }
}

/** Where the loader's strings lie in the file, in bytes, and the entries of its table by their tag. */
function loaderStrings(
  file: Deno.FsFile,
): { offset: number; size: number; entries: ReadonlyMap<number, number> } | undefined {
  const segments = readHeaders(file)?.segments ?? [];
  const dynamic = segments.find((segment) => segment.type === PT_DYNAMIC);
  if (dynamic === undefined) return undefined;
  const table = readAt(file, dynamic.offset, dynamic.size);
  const entries = new Map<number, number>();
  for (let i = 0; i + 16 <= dynamic.size; i += 16) {
    const tag = integer(table, i);
    if (tag === DT_NULL) break;
    entries.set(tag, integer(table, i + 8));
  }
  const address = entries.get(DT_STRTAB);
  if (address === undefined) return undefined;
  const home = segments.find((segment) =>
    segment.type === PT_LOAD && address >= segment.address && address < segment.address + segment.size
  );
  if (home === undefined) return undefined;
  const within = address - home.address;
  const size = Math.min(entries.get(DT_STRSZ) ?? Infinity, home.size - within);
  return { offset: home.offset + within, size, entries };
}

/** @throws {RangeError} if the file ends within its headers */
function readHeaders(file: Deno.FsFile): LibraryHeaders | undefined {
  const header = readAt(file, 0, HEADER);
  const [magic, is64, littleEndian] = [
    header.getUint32(0),
    header.getUint8(4) === 2,
    header.getUint8(5) === 1,
  ];
  if (magic !== 0x7f454c46 || !is64 || !littleEndian) return undefined;
  if (header.getUint16(16, true) !== ET_DYN) return undefined;
  const segmentsAt = integer(header, 32);
  const sectionsAt = integer(header, 40);
  const segmentSize = header.getUint16(54, true);
  const segmentCount = header.getUint16(56, true);
  const sectionBytes = header.getUint16(58, true) * header.getUint16(60, true);
  const table = readAt(file, segmentsAt, segmentSize * segmentCount);
  const segments = Array.from({ length: segmentCount }, (_, i): Segment => ({
    type: table.getUint32(i * segmentSize, true),
    offset: integer(table, i * segmentSize + 8),
    address: integer(table, i * segmentSize + 16),
    size: integer(table, i * segmentSize + 32),
  }));
  // The table of sections stands at the end of the file, so that a file cut short anywhere shows here.
  const length = Math.max(sectionsAt + sectionBytes, ...segments.map(({ offset, size }) => offset + size));
  return { length, machine: header.getUint16(18, true), segments };
}

function integer(view: DataView, at: number): number {
  return Number(view.getBigUint64(at, true));
}

/** @throws {RangeError} if the file ends before */
function readAt(file: Deno.FsFile, offset: number, length: number): DataView {
  const bytes = new Uint8Array(length);
  file.seekSync(offset, Deno.SeekMode.Start);
  let count = 0;
  while (count < length) {
    const read = file.readSync(bytes.subarray(count));
    if (read === null) {
      throw new RangeError(`File ends at byte ${offset + count}: expected ${length - count} more`);
    }
    count += read;
  }
  return new DataView(bytes.buffer);
}
