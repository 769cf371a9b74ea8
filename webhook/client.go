// SPDX-License-Identifier: Apache-2.0

package webhook

import "time"

// ClientConfig is the configuration of a Client. Zero values mean the defaults.
type ClientConfig struct {
	Addresses      AddressPolicy // which addresses may be dialled
	ConnectTimeout time.Duration // TCP and TLS together; 1 s
	ResponseLimit  int           // bytes of an answer's body; 4 MiB
	UserAgent      string
}

// Client calls webhooks. It is safe for concurrent use.
type Client struct{}

// NewClient returns a Client.
func NewClient(cfg ClientConfig) *Client { panic("stub") }
