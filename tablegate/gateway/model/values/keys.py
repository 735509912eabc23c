"""Keys: typed columns and their order-preserving bytes, and the numbers of slots.

Each column is a tag byte and a self-delimiting body. The order of the bytes is the order of the values. A position is
the pair (bytes of the partition columns, bytes of the sort columns). Pairs compare like keys of any kinds, so other
modules do not depend on key types or the number of columns. Empty bytes are below every key, `HIGHEST` is above every
key.

Idea: FoundationDB's tuple layer. Integers and decimals of equal value have equal bytes.

A slot is one of 1,024 equal ranges of the partition hash. Rows store its number, and Citus distributes them by its own
hash of that number. The numbers are chosen so that each 1,024th of Citus' hash has exactly one of them. So every power
of two of shards, up to 1,024, has the same number of slots in each shard. With 0 to 1,023 instead, the fullest of 64
shards would have 1.6 times as many slots as the mean.

The numbers ascend, so that a range of hashes is a range of numbers. They must never change, because rows are stored
under them. `tests/gateway/model/values/test_slots.py` computes them with PostgreSQL: of each 1,024th, the smallest number.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from tablegate.gateway.model.errors import BadKey
from tablegate.gateway.model.values.values import Kind, Value

# fmt: off
SLOTS = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28, 29, 30,
    31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 55, 56, 57, 58, 59,
    60, 61, 62, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 77, 78, 79, 80, 81, 82, 83, 85, 86, 87, 88, 89, 90,
    91, 92, 93, 94, 95, 96, 97, 98, 99, 101, 102, 103, 104, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116,
    117, 118, 119, 120, 121, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 138, 139, 140, 141,
    142, 143, 144, 145, 146, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164,
    165, 166, 167, 168, 169, 170, 172, 173, 174, 175, 176, 178, 179, 181, 182, 183, 184, 185, 186, 187, 188, 189,
    190, 191, 192, 193, 194, 195, 196, 197, 198, 199, 200, 202, 204, 205, 206, 207, 208, 209, 211, 213, 214, 215,
    216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 228, 230, 232, 233, 234, 235, 237, 238, 240, 241, 243,
    244, 245, 246, 249, 250, 251, 252, 256, 258, 259, 260, 261, 262, 263, 264, 265, 266, 269, 271, 272, 274, 275,
    277, 278, 279, 280, 281, 284, 285, 287, 288, 289, 290, 291, 292, 293, 294, 295, 296, 298, 299, 300, 301, 302,
    303, 304, 306, 307, 308, 309, 310, 311, 313, 314, 315, 316, 317, 318, 319, 320, 321, 323, 324, 325, 326, 328,
    329, 330, 333, 334, 335, 336, 337, 339, 340, 341, 342, 344, 345, 347, 348, 349, 350, 351, 352, 353, 354, 355,
    356, 357, 359, 360, 361, 364, 365, 366, 367, 368, 369, 371, 372, 374, 375, 377, 378, 381, 382, 384, 385, 387,
    388, 389, 390, 391, 392, 393, 394, 395, 400, 403, 405, 406, 409, 410, 412, 413, 416, 417, 418, 419, 420, 421,
    422, 425, 426, 427, 428, 430, 432, 434, 436, 438, 439, 442, 443, 445, 447, 448, 449, 451, 452, 453, 454, 455,
    457, 458, 462, 464, 465, 466, 468, 470, 471, 472, 475, 476, 477, 478, 479, 480, 481, 482, 483, 484, 489, 490,
    492, 493, 494, 496, 500, 501, 503, 504, 505, 506, 509, 510, 511, 513, 515, 516, 517, 520, 521, 522, 524, 525,
    526, 528, 531, 532, 534, 539, 543, 545, 550, 552, 553, 554, 555, 556, 558, 559, 562, 564, 565, 567, 568, 569,
    570, 571, 572, 573, 574, 575, 577, 579, 580, 589, 590, 591, 592, 593, 596, 597, 598, 599, 600, 602, 603, 608,
    609, 610, 611, 614, 616, 619, 620, 622, 623, 625, 626, 631, 632, 633, 636, 640, 641, 643, 645, 649, 652, 656,
    657, 658, 663, 664, 665, 666, 668, 669, 671, 673, 674, 675, 676, 679, 680, 683, 686, 689, 690, 691, 692, 693,
    694, 695, 696, 698, 700, 701, 703, 704, 710, 713, 714, 722, 724, 726, 727, 729, 730, 731, 737, 742, 746, 747,
    748, 749, 752, 753, 755, 758, 760, 761, 762, 765, 767, 771, 773, 774, 776, 780, 781, 784, 787, 793, 797, 799,
    802, 804, 806, 807, 810, 811, 815, 816, 819, 825, 826, 827, 828, 829, 835, 837, 838, 841, 842, 844, 846, 847,
    848, 849, 850, 855, 857, 859, 863, 864, 865, 867, 868, 872, 873, 875, 877, 879, 881, 884, 885, 888, 890, 895,
    898, 899, 903, 904, 906, 910, 911, 912, 914, 916, 917, 921, 926, 928, 930, 931, 932, 937, 938, 940, 941, 944,
    945, 948, 950, 955, 956, 957, 959, 962, 964, 965, 966, 971, 972, 980, 981, 987, 989, 991, 992, 995, 997, 998,
    1004, 1006, 1008, 1009, 1012, 1017, 1019, 1020, 1021, 1024, 1027, 1028, 1030, 1032, 1033, 1034, 1035, 1041,
    1043, 1044, 1047, 1048, 1050, 1054, 1059, 1060, 1062, 1064, 1067, 1068, 1071, 1074, 1075, 1076, 1078, 1080,
    1082, 1083, 1085, 1092, 1096, 1101, 1102, 1105, 1114, 1118, 1124, 1130, 1131, 1132, 1133, 1134, 1135, 1137,
    1140, 1141, 1146, 1149, 1154, 1156, 1159, 1160, 1162, 1164, 1166, 1172, 1174, 1175, 1181, 1182, 1183, 1184,
    1186, 1190, 1192, 1194, 1197, 1198, 1199, 1202, 1203, 1204, 1207, 1208, 1221, 1226, 1227, 1228, 1229, 1230,
    1232, 1235, 1242, 1245, 1247, 1248, 1263, 1264, 1265, 1266, 1271, 1277, 1281, 1283, 1286, 1288, 1289, 1292,
    1294, 1303, 1306, 1308, 1312, 1315, 1316, 1319, 1323, 1329, 1332, 1337, 1339, 1340, 1341, 1342, 1346, 1348,
    1349, 1356, 1359, 1361, 1364, 1365, 1366, 1368, 1371, 1375, 1384, 1386, 1392, 1399, 1400, 1402, 1404, 1407,
    1408, 1410, 1412, 1413, 1418, 1423, 1430, 1431, 1437, 1438, 1451, 1463, 1473, 1474, 1476, 1483, 1487, 1489,
    1493, 1494, 1499, 1509, 1512, 1518, 1527, 1536, 1537, 1543, 1555, 1559, 1562, 1567, 1574, 1577, 1584, 1590,
    1598, 1601, 1604, 1607, 1613, 1614, 1618, 1628, 1629, 1630, 1636, 1643, 1645, 1652, 1655, 1657, 1669, 1671,
    1672, 1677, 1678, 1679, 1686, 1693, 1698, 1701, 1708, 1711, 1724, 1727, 1729, 1730, 1733, 1742, 1750, 1755,
    1759, 1761, 1762, 1764, 1766, 1770, 1773, 1776, 1779, 1782, 1785, 1809, 1812, 1816, 1820, 1847, 1852, 1854,
    1863, 1866, 1867, 1868, 1873, 1883, 1889, 1903, 1907, 1908, 1909, 1911, 1916, 1917, 1921, 1924, 1934, 1940,
    1950, 1968, 1988, 1995, 1999, 2002, 2005, 2011, 2020, 2032, 2049, 2064, 2078, 2088, 2091, 2096, 2125, 2136,
    2165, 2168, 2172, 2214, 2216, 2241, 2245, 2250, 2254, 2261, 2263, 2264, 2281, 2294, 2335, 2344, 2368, 2378,
    2392, 2395, 2399, 2403, 2418, 2426, 2437, 2465, 2483, 2503, 2507, 2526, 2529, 2556, 2588, 2630, 2638, 2652,
    2680, 2693, 2694, 2708, 2709, 2731, 2743, 2745, 2754, 2756, 2757, 2811, 2822, 2828, 2831, 2838, 2847, 2875,
    2905, 2927, 2954, 3002, 3061, 3068, 3076, 3095, 3097, 3119, 3121, 3138, 3141, 3172, 3188, 3201, 3221, 3235,
    3253, 3256, 3297, 3320, 3324, 3348, 3356, 3362, 3394, 3410, 3473, 3577, 3590, 3674, 3693, 3706, 3712, 3759,
    3785, 3813, 3824, 3878, 3965, 3987, 4191, 4199, 4202, 4265, 4282, 4317, 4450, 4734, 4782, 4865, 5047, 5218,
    5274, 5304, 5472, 5760, 5869, 5891, 5948, 6665,
)
# fmt: on


LOWEST = b""
HIGHEST = b"\xff"

_NUMBER, _TEXT, _BYTES = b"\x10", b"\x20", b"\x30"
_NEGATIVE, _ZERO, _POSITIVE = 0x40, 0x80, 0xC0
_EXPONENT_BIAS = 0x8000
# Maps two decimal digits, read as a hexadecimal byte, to their pair + 1.
_PAIRS = bytes(10 * (byte >> 4) + (byte & 0x0F) + 1 for byte in range(256))
_COMPLEMENT = bytes(255 - byte for byte in range(256))

partition_hash = zlib.crc32
"""A 32-bit hash of the partition. Parallel scans divide a table by it."""
PARTITION_HASHES = 1 << 32
"""Number of values of `partition_hash`."""
SLOT_SHIFT = 22
"""Number of lower bits of a partition_hash that do not affect the slot."""


class Position(NamedTuple):
    """The position of a row: encoded partition and sort columns. As a bound of a range, either may be partial."""

    partition: bytes
    sort: bytes

    @property
    def after(self) -> Position:
        """The lowest position above this one."""
        return Position(self.partition, self.sort + b"\x00")


def encode_column(value: Value) -> bytes:
    """Return order-preserving, self-delimiting bytes of one key value (TEXT, BYTES or a number)."""
    kind, data = value
    if kind is Kind.TEXT:
        return _TEXT + data.encode().replace(b"\x00", b"\x00\xff") + b"\x00"
    if kind is Kind.BYTES:
        return _BYTES + data.replace(b"\x00", b"\x00\xff") + b"\x00"
    return _NUMBER + _encode_number(data)


def encode_prefix(value: Value) -> bytes:
    """Return the common prefix of all encoded TEXT or BYTES values that begin with this one."""
    return encode_column(value)[:-1]


def decode_column(data: bytes, start: int, kind: Kind) -> tuple[Value, int]:
    """Return the value of a kind at an offset, and the offset of the next one."""
    if kind is Kind.TEXT or kind is Kind.BYTES:
        end = start + 1
        while True:
            end = data.index(b"\x00", end)
            if data[end + 1 : end + 2] != b"\xff":
                break
            end += 2
        raw = data[start + 1 : end].replace(b"\x00\xff", b"\x00")
        return Value(kind, raw.decode() if kind is Kind.TEXT else raw), end + 1
    number, end = _decode_number(data, start + 1)
    return Value(kind, number if kind is Kind.DECIMAL else int(number)), end


def _encode_number(number: Decimal | int) -> bytes:
    """Return sign, biased exponent, pairs of digits (each + 1) and 0. All but the sign is complemented if negative."""
    if not number:
        return bytes((_ZERO,))
    if isinstance(number, int):
        digits = str(abs(number))
        exponent = len(digits) - 1
        negative = number < 0
    else:
        sign, figures, _ = number.as_tuple()
        digits = "".join(map(str, figures)).lstrip("0")
        exponent = number.adjusted()
        negative = bool(sign)
    digits = digits.rstrip("0")
    if len(digits) % 2:
        digits += "0"
    pairs = bytes.fromhex(digits).translate(_PAIRS)
    body = (exponent + _EXPONENT_BIAS).to_bytes(2, "big") + pairs + b"\x00"
    if negative:
        return bytes((_NEGATIVE,)) + body.translate(_COMPLEMENT)
    return bytes((_POSITIVE,)) + body


def _decode_number(data: bytes, start: int) -> tuple[Decimal, int]:
    sign = data[start]
    if sign == _ZERO:
        return Decimal(0), start + 1
    negative = sign == _NEGATIVE
    end = data.index(b"\xff" if negative else b"\x00", start + 3) + 1
    body = data[start + 1 : end]
    if negative:
        body = body.translate(_COMPLEMENT)
    exponent = int.from_bytes(body[:2], "big") - _EXPONENT_BIAS
    digits = "".join(f"{pair - 1:02d}" for pair in body[2:-1]).rstrip("0")
    figures = tuple(int(figure) for figure in digits)
    number = Decimal((int(negative), figures, exponent - len(figures) + 1))
    return Decimal(int(number)) if exponent >= len(figures) - 1 else number, end


def slot_of(partition: bytes) -> int:
    """Return the slot of a partition. Stored rows depend on it, so it must never change."""
    return SLOTS[partition_hash(partition) >> SLOT_SHIFT]


class AutoIncrement:
    """The type of AUTO_INCREMENT, a placeholder in a key. The write path replaces it by a number of the partition's
    counter."""

    def __repr__(self) -> str:
        return "AUTO_INCREMENT"


AUTO_INCREMENT = AutoIncrement()


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One key column. `kind` is TEXT, BYTES, DECIMAL or INT64."""

    name: str
    kind: Kind
    auto_increment: bool = False


class Key(NamedTuple):
    """A row's key: its values in the order of the schema, and its position.

    AUTO_INCREMENT may replace one of the values, which the type does not express. The position then covers the columns
    before it.
    """

    values: tuple[Value, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class KeySchema:
    """One to four partition columns and any number of sort columns (base tables: one to four in all)."""

    partition: tuple[KeyColumn, ...]
    sort: tuple[KeyColumn, ...] = ()
    # Computed once, because every request uses them: all columns in order and their names. `is_pair`: one partition
    # column and at most one sort column. `is_text_pair`: such columns, all of them TEXT, which is the most frequent
    # key.
    columns: tuple[KeyColumn, ...] = field(init=False, repr=False, compare=False)
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    is_pair: bool = field(init=False, repr=False, compare=False)
    is_text_pair: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = self.partition + self.sort
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "names", tuple([column.name for column in columns]))
        is_pair = len(self.partition) == 1 and len(self.sort) <= 1
        is_text = all(column.kind is Kind.TEXT for column in columns)
        object.__setattr__(self, "is_pair", is_pair)
        object.__setattr__(self, "is_text_pair", is_pair and is_text)

    def key(self, values: Mapping[str, Value]) -> Key:
        """Return the key in these attributes.

        Raises BadKey: rule `missing` or `kind`, with the column and the actual value.
        """
        key_values = []
        for column in self.columns:
            value = values.get(column.name)
            if value is None:
                raise BadKey("missing", column=column)
            if value.kind is not column.kind:
                raise BadKey("kind", column=column, actual=value)
            key_values.append(value)
        return Key(tuple(key_values), self.position(key_values))

    def position(self, values: Any) -> Position:
        """Return the position of values in column order. Fewer values give a prefix."""
        split = len(self.partition)
        if split == 1 and len(values) == 2:  # the most frequent key, without lists
            (first_kind, first), (second_kind, second) = values
            if first_kind is second_kind is Kind.TEXT:  # equals encode_column
                partition = _TEXT + first.encode().replace(b"\x00", b"\x00\xff") + b"\x00"
                sort = _TEXT + second.encode().replace(b"\x00", b"\x00\xff") + b"\x00"
                return Position(partition, sort)
            return Position(encode_column(values[0]), encode_column(values[1]))
        if split == 1 == len(values):  # the partition of a page
            return Position(encode_column(values[0]), b"")
        encoded = [encode_column(value) for value in values]
        return Position(b"".join(encoded[:split]), b"".join(encoded[split:]))

    def decode_partition(self, partition: bytes) -> tuple[Value, ...]:
        """Return the values of the partition columns. Raises ValueError if the bytes are not a whole partition."""
        values: list[Value] = []
        start = 0
        for column in self.partition:
            value, start = decode_column(partition, start, column.kind)
            values.append(value)
        if start != len(partition):
            raise ValueError(partition)
        return tuple(values)

    def decode(self, position: Position) -> Key:
        """Return the key at a position, the inverse of `key`."""
        values: list[Value] = []
        for columns, data in ((self.partition, position.partition), (self.sort, position.sort)):
            start = 0
            for column in columns:
                value, start = decode_column(data, start, column.kind)
                values.append(value)
        return Key(tuple(values), position)


# JSON


def _columns_document(columns: tuple[KeyColumn, ...]) -> list[list[Any]]:
    return [[column.name, column.kind.value, column.auto_increment] for column in columns]


def key_schema_document(schema: KeySchema) -> list[Any]:
    """Return a key schema as JSON: partition and sort columns, each as [name, kind, auto-increment]."""
    return [_columns_document(schema.partition), _columns_document(schema.sort)]


def key_schema_of(document: list[Any]) -> KeySchema:
    """Return the key schema of a document from key_schema_document."""
    partition, sort = map(_key_columns, document)
    return KeySchema(partition, sort)


def _key_columns(document: Iterable[Any]) -> tuple[KeyColumn, ...]:
    return tuple(KeyColumn(name, Kind(kind), auto) for name, kind, auto in document)
