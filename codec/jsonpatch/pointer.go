// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "strings"

// tokens returns the number of reference tokens in a JSON pointer.
func tokens(pointer string) int { return strings.Count(pointer, "/") }

// split returns the pointer to the parent and the last reference token,
// unescaped. ok is false for a pointer without any token.
func split(pointer string) (parent, token string, ok bool) {
	slash := strings.LastIndexByte(pointer, '/')
	if slash < 0 {
		return "", "", false
	}
	return pointer[:slash], unescapeToken(pointer[slash+1:]), true
}

// first returns the first reference token, unescaped, and the pointer from
// there on. Text before the first slash is ignored.
func first(pointer string) (token, rest string, ok bool) {
	_, pointer, ok = strings.Cut(pointer, "/")
	if !ok {
		return "", "", false
	}
	end := strings.IndexByte(pointer, '/')
	if end < 0 {
		end = len(pointer)
	}
	return unescapeToken(pointer[:end]), pointer[end:], true
}

// unescapeToken decodes ~1 and ~0 (RFC 6901, section 4). Any other tilde stands
// for itself.
func unescapeToken(token string) string {
	if strings.IndexByte(token, '~') < 0 {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
