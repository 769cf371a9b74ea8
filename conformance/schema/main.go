// SPDX-License-Identifier: Apache-2.0

// Schema writes the schema of the built-in kinds, which client-go has as the text of a Go
// file, to where package policy/schema embeds it.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:generate go run . ../../policy/schema/builtin.yaml.gz

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schema FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(file string) error {
	text, err := builtIn()
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o600)
}

// builtIn returns the schema of the client-go that this module requires.
func builtIn() ([]byte, error) {
	directory, err := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/client-go/applyconfigurations/internal").Output()
	if err != nil {
		return nil, fmt.Errorf("find client-go: %w", err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(directory)), "internal.go"))
	if err != nil {
		return nil, err
	}
	_, text, found := bytes.Cut(source, []byte("YAMLObject(`"))
	text, _, closed := bytes.Cut(text, []byte("`)"))
	if !found || !closed {
		return nil, errors.New("internal.go of client-go has no schema")
	}
	return text, nil
}
