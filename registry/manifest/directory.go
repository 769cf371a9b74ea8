// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Directory is the manifests in a directory itself, in the order of their names: *.yaml,
// *.yml and *.json, hidden files left out. Subdirectories are not read: a mounted
// ConfigMap keeps each of its versions in one. It may be the path of a single manifest,
// whatever that is called.
type Directory string

// Directories returns the directories, and single manifests, at some paths.
func Directories(paths ...string) []Source {
	list := make([]Source, len(paths))
	for i, path := range paths {
		list[i] = Directory(path)
	}
	return list
}

// Name implements Source.
func (d Directory) Name() string { return string(d) }

// Read implements Source.
func (d Directory) Read(context.Context) []File {
	path := string(d)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return []File{readManifest(path)}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return []File{{Name: path, Err: err}}
	}
	var read []File
	for _, e := range entries {
		if name := filepath.Join(path, e.Name()); isManifest(e.Name()) && !isDirectory(name) {
			read = append(read, readManifest(name))
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

func readManifest(name string) File {
	f := File{Name: name, Directory: filepath.Dir(name)}
	info, err := os.Stat(name)
	if err != nil {
		f.Err = err
		return f
	}
	f.Data, f.Err = readRegular(os.Open, name, info)
	return f
}
