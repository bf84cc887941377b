# SPDX-License-Identifier: MIT
vcl 4.1;

import std;

backend site {
	.host = "127.0.0.1";
	.port = "@BACKEND@";
}

sub vcl_recv {
	set req.url = std.querysort(req.url);
	set req.http.X-Seen = regsuball(req.url, "([0-9])", "<\1>") + req.http.User-Agent;
	if (req.url ~ "^/part[0-9]*0") {
		return (pass);
	}
}

sub vcl_backend_response {
	set beresp.ttl = 1s;
	set beresp.grace = 1s;
	set beresp.do_gzip = beresp.http.Content-Type ~ "text";
	set beresp.do_esi = bereq.url ~ "part";
}

sub vcl_deliver {
	set resp.http.X-Seen = req.http.X-Seen;
}
