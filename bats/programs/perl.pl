# SPDX-License-Identifier: MIT
# Heap work of many kinds, each ending in a line that depends on every byte it wrote.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Storable qw(dclone freeze thaw);

my $percent = $ENV{WORK_PERCENT} // 100;

sub rounds {
	return 1 .. $_[0] * $percent / 100;
}

sub show {
	my ($part, @values) = @_;
	printf "%s %s\n", $part, substr sha256_hex(join "\0", @values), 0, 16;
}

# Strings of very different sizes come and go under 5,000 keys.
my %alive;
for my $i (rounds 150_000) {
	my $key = $i * 7919 % 5000;
	if (defined(my $old = $alive{$key})) {
		my ($born) = $old =~ /^(\d+):/;
		die "entry $key is broken" if $old ne "$born:" . chr(65 + $born % 26) x ($born % 700);
	}
	$alive{$key} = "$i:" . chr(65 + $i % 26) x ($i % 700);
	delete $alive{$i % 5000} if $i % 11 == 0;
}
show hash => map { "$_=$alive{$_}" } sort keys %alive;

# A string that grows and shrinks.
my $text = '';
for my $i (rounds 20_000) {
	$text .= "line $i of many\n";
	$text = substr $text, 0, 100 if length $text > 200_000;
}
show growing => $text;

# Regular expressions with captures, substitution by code, and a sort.
my @words = map { sprintf '%s%d', join('', map { chr(97 + ($_ * 31) % 26) } 1 .. $_ % 9 + 1), $_ }
	rounds 40_000;
(my $joined = join ' ', @words) =~ s/([a-z]+)(\d+)/$2 . reverse $1/ge;
show regex => $joined, scalar(() = $joined =~ /\d\b/g);
show sort => sort { substr($a, -2) cmp substr($b, -2) || $a cmp $b } @words;

# Nested data: copied, frozen, thawed, and full of cycles that are cut again.
my $tree = { map { ($_ => [ map { { name => "n$_", list => [ 1 .. $_ % 20 ] } } 1 .. 60 ]) } 1 .. 60 };
my $copy = thaw freeze dclone $tree;
show nested => map { my $k = $_; map { "$_->{name}@{$_->{list}}" } @{ $copy->{$k} } }
	sort { $a <=> $b } keys %$copy;
for my $i (rounds 20_000) {
	my $node = { self => undef, data => 'y' x ($i % 300) };
	$node->{self} = $node;
	undef $node->{self};
}

# Children that allocate in a copy of this heap and answer through a pipe.
my @answers;
for my $i (rounds 20) {
	my $child = open(my $pipe, '-|') // die "fork: $!";
	if (!$child) {
		my %own = map { ($_ => "$_" x $i) } 1 .. 2000;
		print sha256_hex(join ',', map { "$_$own{$_}" } sort keys %own);
		exit 0;
	}
	push @answers, do { local $/; <$pipe> };
	close $pipe or die "child $i ended with $?";
}
show fork => @answers;

# Interpreter threads: each clones the whole heap of this one.
if (eval { require threads; 1 }) {
	my @threads = map {
		my $n = $_;
		threads->create(sub { sha256_hex(join '', map { "$n$_" x 20 } 1 .. 5000) });
	} 1 .. ($percent < 100 ? 2 : 4);
	show threads => map { $_->join } @threads;
}
