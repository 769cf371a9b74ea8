// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"path/filepath"
	"strconv"
)

// placesOf sums where manifests lie, which decides where the files lie that they name.
func placesOf(manifests [][]File) string {
	h := sha256.New()
	for _, files := range manifests {
		for _, f := range files {
			WritePart(h, []byte(f.Name))
			WritePart(h, []byte(f.Directory))
		}
	}
	return string(h.Sum(nil))
}

// hashOf sums names and contents of each Source's manifests, wherever they lie.
func hashOf(manifests [][]File) string {
	h := sha256.New()
	for _, files := range manifests {
		WritePart(h, binary.LittleEndian.AppendUint64(nil, uint64(len(files))))
		for _, f := range files {
			WritePart(h, []byte(filepath.Base(f.Name)))
			writeContent(h, f.Data, f.Err)
		}
	}
	return string(h.Sum(nil))
}

// fileSum is of a manifest where it lies.
type fileSum [sha256.Size]byte

func sumOf(f *File) (sum fileSum) {
	h := sha256.New()
	WritePart(h, []byte(f.Name))
	WritePart(h, []byte(f.Directory))
	WritePart(h, []byte(strconv.FormatBool(f.OnlyKnownKinds)))
	writeContent(h, f.Data, f.Err)
	h.Sum(sum[:0])
	return sum
}

func writeContent(h hash.Hash, data []byte, err error) {
	if err != nil {
		WritePart(h, []byte(err.Error()))
	}
	WritePart(h, data)
}

// WritePart writes data so that no other sequence of parts reads the same.
func WritePart(h hash.Hash, data []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(data)))
	h.Write(n[:])
	h.Write(data)
}
