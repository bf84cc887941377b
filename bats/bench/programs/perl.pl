# SPDX-License-Identifier: MIT
# Text as perl is used for it: split, match, hashes of arrays, sort, join, substitute.
use strict;
use warnings;

my $rounds = shift;
my ($seed, $sum, %index) = (1, 0);

sub draw {
	$seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
	return $seed % shift;
}

for my $round (1 .. $rounds) {
	my @lines = map {
		join ' ', map { 'w' . draw(9000) . ('x' x draw(30)) } 1 .. 8 + draw(12)
	} 1 .. 150;
	for my $line (@lines) {
		for my $word (split / /, $line) {
			push @{ $index{$word} }, $round if $word =~ /^w(\d+)x{3,}$/ && $1 % 2;
		}
		(my $other = $line) =~ s/w(\d+)/<$1>/g;
		$sum += length $other;
	}
	my @often = sort { @{ $index{$b} } <=> @{ $index{$a} } || $a cmp $b } keys %index;
	delete @index{ @often[ 4000 .. $#often ] } if @often > 8000;
	$sum += length join ',', reverse sort @lines;
}
print "$sum\n";
