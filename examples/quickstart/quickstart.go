// SPDX-License-Identifier: Apache-2.0

// Package quickstart carries the manifests of this directory, which the demo,
// the documentation and the tests share.
package quickstart

import "embed"

// Manifests are the YAML files of this directory.
//
//go:embed *.yaml
var Manifests embed.FS
