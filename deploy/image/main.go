// SPDX-License-Identifier: Apache-2.0

// Image puts static binaries of the dispatcher, and of what runs beside it, into an OCI
// image layout: no base image, no daemon, no registry. The same binaries give the same digest.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	var r release
	out := flags.String("o", "", "directory of the layout, which is replaced")
	push := flags.String("push", "", "where it is pushed to besides: registry/repository:tag")
	root := flags.String("root", ".", "root of the repository that the binaries were built from")
	created := flags.Int64("created", 0, "time that it says it was made at, in seconds since 1970")
	flags.StringVar(&r.version, "version", "devel", "its version")
	flags.StringVar(&r.revision, "revision", "", "its commit")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: image -o DIRECTORY [FLAGS] BINARY...")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		flags.Usage()
		return fmt.Errorf("name a directory and at least one binary")
	}
	r.root, r.created = *root, time.Unix(*created, 0).UTC()
	var err error
	if r.licence, err = os.ReadFile(*root + "/LICENSE"); err != nil {
		return err
	}
	for _, path := range flags.Args() {
		b, err := readBinary(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.binaries = append(r.binaries, b)
	}
	index, err := r.index()
	if err != nil {
		return err
	}
	digest, err := write(*out, index, r.version)
	if err != nil {
		return err
	}
	fmt.Println(digest) //nolint:forbidigo // it is what the program is asked for
	if *push != "" {
		return upload(*push, index)
	}
	return nil
}
