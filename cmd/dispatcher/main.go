// SPDX-License-Identifier: Apache-2.0

// The dispatcher is the shared admission tier of many Kubernetes clusters.
package main

import (
	"os"

	// Trust roots for where the system has none: the image holds nothing but this binary.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/admission-dispatcher/dispatcher/command"
)

// version is stamped by the Makefile: -ldflags "-X main.version=...".
var version = "devel"

func main() {
	os.Exit(command.Run(command.Options{Version: version}, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
