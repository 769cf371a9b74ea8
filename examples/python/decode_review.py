#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads an AdmissionReview in Kubernetes protobuf and writes an answer to it.

    decode_review.py REVIEW ANSWER

Standard library only. docs/webhook-authors.md explains the bytes; a webhook
would do the same with the body of a request and of its response. The policy:
what is created needs the label "owner".
"""

import json
import sys

MAGIC = b"k8s\0"
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(data, at):
    """Returns the number at the offset and the offset behind it."""
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number does not end")
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at


def fields(message):
    """Returns the fields of a message by number: numbers and bytes.

    Of a field that comes twice the last one counts. Unknown fields are kept and
    do no harm, so that a webhook survives the next version of Kubernetes.
    """
    found, at = {}, 0
    while at < len(message):
        tag, at = varint(message, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            found[number], at = varint(message, at)
            continue
        if wire_type == BYTES:
            length, at = varint(message, at)
        elif wire_type in (FIXED64, FIXED32):
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise ValueError(f"field {number} has wire type {wire_type}")
        if at + length > len(message):
            raise ValueError(f"field {number} is cut short")
        found[number] = message[at : at + length]
        at += length
    return found


def text(message, number):
    return message.get(number, b"").decode("utf-8")


def read_object(request, number):
    """Returns the object in a RawExtension, or None if there is none."""
    raw = fields(request.get(number, b"")).get(1, b"")
    if raw.startswith(MAGIC):
        raise ValueError("native protobuf: do not offer objects=native in Accept-Post")
    return json.loads(raw) if raw else None


def read_review(body):
    """Returns the apiVersion of a review and its request."""
    if not body.startswith(MAGIC):
        raise ValueError("not Kubernetes protobuf")
    unknown = fields(body[len(MAGIC) :])
    type_meta = fields(unknown[1])
    api_version, kind = text(type_meta, 1), text(type_meta, 2)
    if kind != "AdmissionReview" or api_version not in ("admission.k8s.io/v1", "admission.k8s.io/v1beta1"):
        raise ValueError(f"this is a {kind} of {api_version}")
    request = fields(fields(unknown[2])[1])
    group_version_kind = fields(request[2])
    return api_version, {
        "uid": text(request, 1),
        "kind": {
            "group": text(group_version_kind, 1),
            "version": text(group_version_kind, 2),
            "kind": text(group_version_kind, 3),
        },
        "name": text(request, 5),
        "namespace": text(request, 6),
        "operation": text(request, 7),
        "object": read_object(request, 9),
    }


def write_varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def write_field(number, value):
    """Writes a bool or an int (not negative) as a number, all else with its length."""
    if isinstance(value, int):
        return write_varint(number << 3 | VARINT) + write_varint(int(value))
    if isinstance(value, str):
        value = value.encode("utf-8")
    return write_varint(number << 3 | BYTES) + write_varint(len(value)) + value


def write_answer(api_version, uid, allowed, code=0, message=""):
    """Writes an AdmissionReview of the same version about the same uid."""
    response = write_field(1, uid) + write_field(2, allowed)
    if not allowed:
        response += write_field(3, write_field(2, "Failure") + write_field(3, message) + write_field(6, code))
    type_meta = write_field(1, api_version) + write_field(2, "AdmissionReview")
    return MAGIC + write_field(1, type_meta) + write_field(2, write_field(2, response))


def decide(request):
    """The policy: returns allowed, code and message."""
    labels = (request["object"] or {}).get("metadata", {}).get("labels") or {}
    if request["operation"] == "CREATE" and "owner" not in labels:
        return False, 403, 'the label "owner" is missing'
    return True, 0, ""


def main(review, answer):
    with open(review, "rb") as file:
        api_version, request = read_review(file.read())
    print(json.dumps({"apiVersion": api_version, **request}))
    with open(answer, "wb") as file:
        file.write(write_answer(api_version, request["uid"], *decide(request)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
