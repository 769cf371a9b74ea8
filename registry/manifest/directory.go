// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds a file, in bytes.
const maxFile = 64 << 20

// readDirectory reads the manifests in dir itself, in the order of their names:
// *.yaml, *.yml and *.json, hidden files left out. Subdirectories are not read:
// a mounted ConfigMap keeps each of its versions in one.
func readDirectory(dir string) []File {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []File{{Name: dir, err: err}}
	}
	var read []File
	for _, e := range entries {
		if name := filepath.Join(dir, e.Name()); isManifest(e.Name()) && !isDirectory(name) {
			read = append(read, readFile(name))
		}
	}
	return read
}

func isManifest(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// readFile reads a manifest.
func readFile(name string) File {
	info, err := os.Stat(name)
	if err != nil {
		return File{Name: name, err: err}
	}
	data, err := readRegular(anywhere{}, name, info)
	return File{Name: name, Data: data, err: err}
}

// opener is the file system, or a part of it.
type opener interface {
	Open(name string) (*os.File, error)
}

// anywhere is all of the file system.
type anywhere struct{}

func (anywhere) Open(name string) (*os.File, error) { return os.Open(name) }

// readRegular reads a regular file; anything else could block for ever.
func readRegular(from opener, name string, info os.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	return data, nil
}
