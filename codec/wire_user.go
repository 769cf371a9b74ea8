// SPDX-License-Identifier: Apache-2.0

package codec

// appendUser appends an authentication.k8s.io UserInfo.
func appendUser(dst []byte, number uint8, u *UserInfo) []byte {
	dst = openMessage(dst, number)
	start := len(dst)
	dst = appendText(dst, 1, u.Username)
	dst = appendText(dst, 2, u.UID)
	dst = appendTexts(dst, 3, u.Groups)
	for i := range u.Extra {
		dst = appendExtra(dst, 4, &u.Extra[i])
	}
	return closeMessage(dst, start)
}

func userSize(u *UserInfo) int {
	size := fieldSize(len(u.Username)) + fieldSize(len(u.UID)) + textsSize(u.Groups)
	for i := range u.Extra {
		size += fieldSize(extraSize(&u.Extra[i]))
	}
	return size
}

// appendExtra appends an entry of the map of ExtraValues.
func appendExtra(dst []byte, number uint8, e *ExtraValue) []byte {
	dst = appendHead(dst, number, extraSize(e))
	dst = appendText(dst, 1, e.Key)
	dst = appendHead(dst, 2, textsSize(e.Values))
	return appendTexts(dst, 1, e.Values)
}

func extraSize(e *ExtraValue) int {
	return fieldSize(len(e.Key)) + fieldSize(textsSize(e.Values))
}

func appendTexts(dst []byte, number uint8, texts [][]byte) []byte {
	for _, text := range texts {
		dst = appendText(dst, number, text)
	}
	return dst
}

func textsSize(texts [][]byte) int {
	size := 0
	for _, text := range texts {
		size += fieldSize(len(text))
	}
	return size
}
