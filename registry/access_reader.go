// SPDX-License-Identifier: Apache-2.0

package registry

import "fmt"

// accessReader reads what a kubeconfig names. The first failure is kept.
type accessReader struct {
	files files
	at    origin // of the kubeconfig: relative names are relative to it
	err   error
}

// content is what the kubeconfig holds itself, or else the file's.
func (r *accessReader) content(what, name string, held []byte) string {
	if len(held) > 0 || name == "" {
		return string(held)
	}
	data, err := r.files.read(r.at, name)
	r.keep(what, err)
	return string(data)
}

// token prefers the file, as client-go does.
func (r *accessReader) token(u *kubeUser) string {
	if u.TokenFile == "" {
		return r.heldToken(u.Token)
	}
	token, err := r.files.readToken(r.at, u.TokenFile)
	r.keep("tokenFile", err)
	return token
}

func (r *accessReader) heldToken(token string) string {
	if token == "" {
		return ""
	}
	checked, err := printableToken([]byte(token))
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("token %w", err)
	}
	return checked
}

func (r *accessReader) keep(what string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", what, unreadableFile(err))
	}
}
