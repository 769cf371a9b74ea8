// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"fmt"
	"os"
)

// File is a file that is rotated when it is full: path to path.1, that to path.2
// and so on. It is for one goroutine.
type File struct {
	path     string
	maxBytes int64
	maxFiles int

	file *os.File // nil after a failure, until the next Write
	size int64
}

// OpenFile opens path for appending. maxFiles older ones are kept.
func OpenFile(path string, maxBytes int64, maxFiles int) (*File, error) {
	f := &File{path: path, maxBytes: maxBytes, maxFiles: maxFiles}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("telemetry.decisionLog.file: %w", err)
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write writes one line, to a new file if this one has no room for it.
func (f *File) Write(line []byte) (int, error) {
	if f.file != nil && f.size > 0 && f.size+int64(len(line)) > f.maxBytes {
		f.rotate()
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return n, err
}

// rotate moves the files. One that cannot be moved is written to further.
func (f *File) rotate() {
	_ = f.Close()
	if f.maxFiles == 0 {
		_ = os.Remove(f.path)
		return
	}
	for i := f.maxFiles - 1; i > 0; i-- {
		_ = os.Rename(f.numbered(i), f.numbered(i+1))
	}
	_ = os.Rename(f.path, f.numbered(1))
}

func (f *File) numbered(i int) string { return fmt.Sprintf("%s.%d", f.path, i) }

// Close closes the file. A further Write opens it again.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
