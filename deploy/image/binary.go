// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// binary is a program for one architecture, with what it was built from.
type binary struct {
	name         string // of the file
	architecture string
	content      []byte
	info         *debug.BuildInfo
}

// readBinary reads a program of Go that is to run in an image without anything else.
func readBinary(path string) (binary, error) {
	b := binary{name: filepath.Base(path)}
	var err error
	if b.content, err = os.ReadFile(path); err != nil {
		return b, err
	}
	if b.info, err = buildinfo.Read(bytes.NewReader(b.content)); err != nil {
		return b, err
	}
	for _, want := range []debug.BuildSetting{
		{Key: "GOOS", Value: "linux"},
		{Key: "CGO_ENABLED", Value: "0"}, // there is no libc
		{Key: "-trimpath", Value: "true"},
	} {
		if got := b.setting(want.Key); got != want.Value {
			return b, fmt.Errorf("was built with %s=%s, not %s", want.Key, got, want.Value)
		}
	}
	b.architecture = b.setting("GOARCH")
	return b, nil
}

func (b *binary) setting(key string) string {
	for _, s := range b.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// modules returns what was linked, the replacements in place of what they replace.
func modules(info *debug.BuildInfo) []*debug.Module {
	var list []*debug.Module
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, m)
	}
	return list
}

// allModules returns what was linked into any of the binaries, each module once, by its
// path. They are of one repository, so there is one version of each.
func allModules(binaries []binary) []*debug.Module {
	var list []*debug.Module
	for _, b := range binaries {
		list = append(list, modules(b.info)...)
	}
	slices.SortFunc(list, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(list, func(a, b *debug.Module) bool { return a.Path == b.Path })
}

// licences returns the texts that have to go with the modules in binaries, Go's own
// first. root is the repository that they were built from. A module without any is an
// error: somebody has to look.
func licences(binaries []binary, root string) ([]byte, error) {
	args := []string{"list", "-m", "-f", "{{.Path}}@{{.Version}} {{.Dir}}"}
	for _, m := range allModules(binaries) {
		args = append(args, m.Path)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	lines := append([]string{binaries[0].info.GoVersion + " " + strings.TrimSpace(string(goroot))}, strings.Split(strings.TrimSpace(string(listed)), "\n")...)
	var all bytes.Buffer
	for _, line := range lines {
		module, dir, _ := strings.Cut(line, " ")
		names, err := licenceFiles(dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", module, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&all, "==== %s: %s\n\n%s\n\n", module, filepath.Base(name), bytes.TrimSpace(text))
		}
	}
	return all.Bytes(), nil
}

// licenceFiles returns the licence and notices in the directory of a module. Some
// distributions of Go keep theirs elsewhere.
func licenceFiles(dir string) ([]string, error) {
	var found []string
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "PATENTS"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		found = append(found, names...)
	}
	slices.Sort(found)
	if dir == "" || len(found) == 0 {
		return nil, fmt.Errorf("there is none in %q", dir)
	}
	return found, nil
}
